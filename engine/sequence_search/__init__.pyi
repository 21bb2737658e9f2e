from . import export as export
from . import parameters as parameters
from . import scoring as scoring
from . import search as search
from . import summary as summary
from . import tables as tables
from . import workload as workload
from .entry import SEQUENCE_SEARCH as SEQUENCE_SEARCH
