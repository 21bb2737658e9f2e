from . import analyses as analyses
from . import calibration as calibration
from . import calibration_store as calibration_store
