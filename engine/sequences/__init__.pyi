from . import stack_formats as stack_formats
from . import statistics as statistics
