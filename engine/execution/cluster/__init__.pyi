from . import certificates as certificates
from . import option as option
from . import serving as serving
from . import starting as starting
