"""What the package gives, for type checkers: at run time each is imported when it is asked for."""

from dpstudy.core.errors import StudyError as StudyError
from dpstudy.estimator import DPClassifier as DPClassifier
from dpstudy.methods import fit as fit
from dpstudy.methods import predict as predict
from dpstudy.methods.result import Result as Result

__version__: str
__all__ = ["DPClassifier", "Result", "StudyError", "__version__", "fit", "predict"]
