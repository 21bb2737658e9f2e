from .progress import Cancelled as Cancelled
from .progress import Progress as Progress
from .progress import ProgressEvent as ProgressEvent
from .queue import Job as Job
from .queue import JobEvent as JobEvent
from .queue import JobQueue as JobQueue
from .queue import JobState as JobState
from .queue import Lane as Lane
