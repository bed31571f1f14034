# What no record says the making of is made anew: Snakemake would take it for current, whatever the config says.


if workflow.is_main_process:
    internals.keep_records()
    if lost := internals.outdate(internals.unrecorded(targets.lasting_files(STUDY))):
        logger.warning(
            f"dpstudy: no record says what made {lost[0]}"
            + (f" and {len(lost) - 1:,} other files" if len(lost) > 1 else "")
            + ": made anew where it is needed (docs/faq.md)"
        )
elif workflow.remote_exec:
    internals.record_own_jobs()
