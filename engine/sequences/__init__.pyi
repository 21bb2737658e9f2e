from . import alignment as alignment
from . import composition as composition
from . import database as database
from . import matrices as matrices
from . import scheme as scheme
from . import stack_formats as stack_formats
from . import statistics as statistics
