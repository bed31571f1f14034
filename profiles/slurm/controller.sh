#!/usr/bin/env bash
# Runs a study from a job of its own:  sbatch profiles/slurm/controller.sh [--configfile studies/NAME.yaml] [TARGET ...]
# Short jobs run here, on the cores of this job, so that a grid of 1,000 cells waits in the queue once; all others are
# submitted. Change the next lines to what your cluster wants. Five jobs run here at a time, each of one core and at most the
# mem_mb of its rule; searches for hyper-parameters are submitted: where yours are short, add tune_entry below.
#SBATCH --cpus-per-task=5
#SBATCH --mem=24G
#SBATCH --time=2-00:00:00
#SBATCH --job-name=dpstudy
#SBATCH --output=dpstudy-%j.out
# #SBATCH --account=my_account
# #SBATCH --partition=cpu
set -euo pipefail
if [ -n "${SLURM_JOB_ID:-}" ]; then  # SLURM opens its own file, --output above, to all, and what a run says may name persons
  said=".snakemake/controller-$SLURM_JOB_ID.out"
  mkdir -p .snakemake && (umask 077 && : >> "$said")
  echo "what the run says stands in $said"
  exec >> "$said" 2>&1
fi
here="train_closed_form train_stepped gather_cell score_cell prepare_manifest extract_manifest"                   # short cells
here="$here certify_cells summarise_cells total_privacy judge_claims build_table draw_figure build_report"  # what follows
export DPSTUDY_HERE="${DPSTUDY_HERE-$here}"
exec "${DPSTUDY_PYTHON:-.venv/bin/python}" workflow/run.py --workflow-profile profiles/slurm "$@"
