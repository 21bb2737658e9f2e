from . import judging as judging
from . import predicting as predicting
from . import prediction_parameters as prediction_parameters
from . import queries as queries
from . import references as references
from . import results as results
from .entry import LIBRARY_SEARCH as LIBRARY_SEARCH
