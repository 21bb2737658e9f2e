"""Jobs: progress that can be watched and cancelled, work behind the step that is shown, and the queue that works jobs off."""

from proteoscope.engine.jobs.progress import Cancelled, Progress, ProgressEvent
from proteoscope.engine.jobs.queue import Job, JobEvent, JobQueue, JobState, Lane

__all__ = ["Cancelled", "Job", "JobEvent", "JobQueue", "JobState", "Lane", "Progress", "ProgressEvent"]
