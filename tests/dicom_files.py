"""DICOM files that tests make: small, uncompressed, and whole but for what a test leaves out."""

from pathlib import Path

import numpy as np
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage, generate_uid


def write_dicom(path: Path, pixels: np.ndarray, bits: int = 12, **tags) -> Path:
    """A grey picture; `tags` by their keywords, None to leave one out."""
    data = Dataset()
    data.file_meta = FileMetaDataset()
    data.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data.file_meta.MediaStorageSOPClassUID = data.SOPClassUID = SecondaryCaptureImageStorage
    data.file_meta.MediaStorageSOPInstanceUID = data.SOPInstanceUID = generate_uid(entropy_srcs=[str(path)])
    data.Rows, data.Columns = pixels.shape
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
    data.BitsAllocated = 8 * pixels.dtype.itemsize
    data.BitsStored, data.HighBit = bits, bits - 1
    data.PixelRepresentation = int(pixels.dtype.kind == "i")
    data.PixelData = pixels.tobytes()
    for keyword, value in tags.items():
        if value is None:
            delattr(data, keyword)
        else:
            setattr(data, keyword, value)
    data.save_as(path, enforce_file_format=True)
    return path
