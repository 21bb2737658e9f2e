from . import experiment as experiment
from . import main as main
from . import search as search
from . import system_limits as system_limits
from . import worker_of_job as worker_of_job
