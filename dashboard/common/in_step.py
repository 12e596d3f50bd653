"""When beat sends the task of a periodic job: as each of its slots begins, in step with what claims them."""

from datetime import datetime

from celery.schedules import schedstate, schedule


class InStep(schedule):
    """Due once in each slot, as it begins. A beat of its own phase comes now just before and now just after a slot ends: of two tasks in
    one slot the second does nothing, and the slot in between goes unused."""

    def is_due(self, last_run_at: datetime) -> schedstate:
        """Whether a slot has begun since, and the seconds until the next one."""
        interval = self.seconds
        now = self.now().timestamp()
        slot = now // interval
        return schedstate(slot > last_run_at.timestamp() // interval, (slot + 1) * interval - now)
