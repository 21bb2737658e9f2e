from . import statistics as statistics
