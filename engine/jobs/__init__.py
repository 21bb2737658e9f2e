"""Jobs: progress with cancellation, background tasks, and the job queue."""

from proteoscope.engine.jobs.progress import Cancelled, Progress, ProgressEvent
from proteoscope.engine.jobs.queue import Job, JobEvent, JobQueue, JobState, Lane

__all__ = ["Cancelled", "Job", "JobEvent", "JobQueue", "JobState", "Lane", "Progress", "ProgressEvent"]
