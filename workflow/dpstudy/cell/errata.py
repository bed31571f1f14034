"""Known errors in ledgers that earlier versions wrote; docs/errata.md has them in full, with corrected bounds.

A ledger names the version that wrote it; those of 0.1 and before name none.
"""

from collections.abc import Mapping

from dpstudy.models.names import is_timm_network, is_wide_resnet
from dpstudy.privacy.ledger_events import flat

_UNNAMED = ("cifar", "digits", "idx", "imagenet32", "mosaics")
_SMALLEST_DELTA, _MOST_UNITS = 1e-14, 1_000_000
NUMBERED = (
    "own records went by their row numbers: where a row is deleted, others change places between splits, and the "
    "epsilon holds only for neighbours that leave a gap there (erratum 1)"
)
MISSING = (
    "a missing name in the subject column, such as `unknown` or `nan`, or a number rounded to float32, counted as one "
    "person: where there was one, the persons behind it have no guarantee (erratum 2)"
)
SMALL_DELTA = (
    "delta is below what the accountant of sampled batches can resolve: the epsilon is not proved, and the noise was "
    "chosen by it (erratum 3)"
)
ROUNDED = (
    "sums of more than a million records were rounded to float32: a record may have moved them by a quarter more than "
    "the sensitivity, so that epsilon is that of noise smaller by as much (erratum 4)"
)
UNCHECKED = (
    "its network is none of this library's, and was not tested for mixing records before it was trained: where it "
    "mixes them, there is no guarantee (erratum 5)"
)


def own_rows(dataset: Mapping) -> bool:
    """Whether a user's own records, by the data set's config entry, are in a format that names no record."""
    return dataset.get("test_split") == "private" and dataset["reader"] in _UNNAMED


def errata(ledger: Mapping, network: str | None = None, unnamed: bool = False) -> list[str]:
    """The possible errors in a ledger, a sentence each; empty for a ledger of this version.

    Args:
        ledger: the content of a ledger.json.
        network: that was trained, where there is one, as its entry names it.
        unnamed: what `own_rows` says of its data set.
    """
    if "version" in ledger or ledger["guarantee"] != "proved":
        return []
    sampled = any("poisson" in event["sampling"] for event in flat(ledger["events"]))
    sentences = [NUMBERED] if unnamed or any(" go by their number" in text for text in ledger["not_accounted"]) else []
    sentences += [MISSING] if ledger["unit"] == "subject" else []
    sentences += [SMALL_DELTA] if sampled and ledger["delta"] <= _SMALLEST_DELTA else []
    sentences += [ROUNDED] if ledger["n"] > _MOST_UNITS else []
    return sentences + ([UNCHECKED] if network is not None and not _was_known(network) else [])


def _was_known(network: str) -> bool:
    """Whether it was shipped, or one of timm's, which were tested."""
    shipped = network == "lenet" or network.startswith(("tanh-", "scatter-"))
    return shipped or is_wide_resnet(network) or is_timm_network(network)
