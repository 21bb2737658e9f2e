from . import certificates as certificates
from . import launchers as launchers
from . import requests as requests
from . import serving as serving
