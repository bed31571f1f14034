"""Names of networks, told apart without building or importing one."""

import re

WIDE_RESNET = re.compile(r"wrn-(\d+)-(\d+)(?:-(gn|plain))?")
NF_RESNET, NFNET = re.compile(r"nf-resnet-(\d+)"), re.compile(r"nfnet-f([0-6])")
TIMM = re.compile(r"timm:([A-Za-z0-9_.]+)(\+gn)?")


def is_wide_resnet(architecture: str) -> bool:
    """Whether a name is of that family; building it may still refuse its depth."""
    return WIDE_RESNET.fullmatch(architecture) is not None


def is_normaliser_free(architecture: str) -> bool:
    """Whether a name is of those families; building it may still refuse its depth."""
    return any(pattern.fullmatch(architecture) for pattern in (NF_RESNET, NFNET))


def is_timm_network(architecture: str) -> bool:
    """Whether timm builds it; building it may still refuse it."""
    return is_normaliser_free(architecture) or TIMM.fullmatch(architecture) is not None
