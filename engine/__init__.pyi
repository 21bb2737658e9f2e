from . import calibration as calibration
from . import estimates as estimates
from . import files as files
from . import growth as growth
from . import parameters as parameters
from . import resumption as resumption
from . import searches as searches
from . import version as version
