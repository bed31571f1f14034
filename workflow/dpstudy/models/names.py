"""Recognising networks by name, without building or importing one."""

import re

from dpstudy.core.errors import StudyError

EQUIVARIANT = "equivariant-resnet-9"
_DEEPEST = 1000  # layers of a Wide ResNet
WIDE_RESNET = re.compile(r"wrn-(\d+)-(\d+)(?:-(gn|plain))?")
NF_RESNET, NFNET = re.compile(r"nf-resnet-(\d+)"), re.compile(r"nfnet-f([0-6])")
TIMM = re.compile(r"timm:([A-Za-z0-9_.]+)(@[1-9]\d*)?(\+gn|\+frozen)?")


def is_wide_resnet(architecture: str) -> bool:
    """Whether a name has the form of a Wide ResNet's, which may have no such depth (`wide_resnet`)."""
    return WIDE_RESNET.fullmatch(architecture) is not None


def wide_resnet(architecture: str) -> tuple[int, int, str | None]:
    """The depth, the width and the variant (gn, plain; None: as de2022 has it) in a Wide ResNet's name.

    Raises:
        StudyError: there is none of these.
    """
    match = WIDE_RESNET.fullmatch(architecture)
    depth, width, variant = (int(match[1]), int(match[2]), match[3]) if match else (0, 0, None)
    if not width or not 10 <= depth <= _DEEPEST or (depth - 4) % 6:
        raise StudyError(
            f"network {architecture!r}: write wrn-D-W, with D = 10, 16, 22, ... {_DEEPEST} layers and W at least 1"
        )
    return depth, width, variant


def is_normaliser_free(architecture: str) -> bool:
    """Whether a name has the form of an NF-ResNet's or NFNet's; building it may still refuse its depth."""
    return any(pattern.fullmatch(architecture) for pattern in (NF_RESNET, NFNET))


def is_timm_network(architecture: str) -> bool:
    """Whether timm builds the network; it may still refuse to."""
    return is_normaliser_free(architecture) or TIMM.fullmatch(architecture) is not None


def enlarged(architecture: str) -> tuple[int, int] | None:
    """(h, w) that a network itself enlarges images to ("timm:NAME@64"); None: it takes them as they are."""
    match = TIMM.fullmatch(architecture)
    return (int(match[2][1:]),) * 2 if match and match[2] else None


def relatives(architecture: str) -> list[str]:
    """Networks whose weights could be mistaken for this one's: its family's variants, and timm's with similar names."""
    if match := NF_RESNET.fullmatch(architecture):
        return [f"timm:nf_resnet{match[1]}"]
    if match := NFNET.fullmatch(architecture):
        return [f"timm:dm_nfnet_f{match[1]}", f"timm:nfnet_f{match[1]}"]
    if match := WIDE_RESNET.fullmatch(architecture):
        name = f"wrn-{match[1]}-{match[2]}"
        return [other for other in (name, f"{name}-gn", f"{name}-plain") if other != architecture]
    if match := TIMM.fullmatch(architecture):
        ours = re.sub(r"^(?:dm_)?nfnet_f", "nfnet-f", match[1]).replace("nf_resnet", "nf-resnet-")
        side = match[2] or ""
        near = [f"timm:{match[1]}{side}{end}" for end in ("", "+gn", "+frozen") if end != (match[3] or "")]
        return near if ours == match[1] else [ours, *near]
    return []
