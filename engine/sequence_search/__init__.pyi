from . import expecting as expecting
from . import exporting as exporting
from . import methods_paragraph as methods_paragraph
from . import parameters as parameters
from . import scoring as scoring
from . import search as search
from . import tables as tables
from .entry import SEQUENCE_SEARCH as SEQUENCE_SEARCH
