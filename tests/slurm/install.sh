#!/usr/bin/env bash
# Debian's SLURM and munge, for tests/slurm; nothing where they are there already.
set -euo pipefail
there=1
for program in slurmctld slurmd munged sinfo; do command -v "$program" > /dev/null || there=0; done
if [ "$there" = 1 ]; then exit 0; fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
  echo "make test-slurm: needs root and Debian's packages slurmctld, slurmd, slurm-client and munge" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client munge > /dev/null
