#!/usr/bin/env bash
# Runs a study from a job of its own:  sbatch profiles/slurm/controller.sh [--configfile studies/NAME.yaml] [TARGET ...]
# Short jobs run here, on the cores of this job, so that a grid of 1,000 cells waits in the queue once; all others are
# submitted. Change the next lines to what your cluster wants, and local-cores of config.yaml with the first of them.
#SBATCH --cpus-per-task=8
#SBATCH --mem=24G
#SBATCH --time=2-00:00:00
#SBATCH --job-name=dpstudy
#SBATCH --output=dpstudy-%j.out
# #SBATCH --account=my_account
# #SBATCH --partition=cpu
set -euo pipefail
here="train_closed_form train_stepped gather_cell prepare_manifest extract_manifest"                   # short cells
here="$here certify_cells summarise_cells total_privacy judge_claims build_table draw_figure build_report"  # what follows
export DPSTUDY_HERE="${DPSTUDY_HERE-$here}"
exec "${DPSTUDY_PYTHON:-.venv/bin/python}" workflow/run.py --workflow-profile profiles/slurm "$@"
