from . import advice as advice
from . import parameters as parameters
from . import search as search
from . import tables as tables
from . import workload as workload
from .entry import IDENTIFICATION as IDENTIFICATION
