from . import advice as advice
from . import expecting as expecting
from . import parameters as parameters
from . import search as search
from . import tables as tables
from .entry import IDENTIFICATION as IDENTIFICATION
