"""A forecast in words: how far a job is, and what is left of its time and money."""

from rightpool.api.wording import cents, dollars, instant, share, span
from rightpool.planning.work.forecast import Forecast


def forecast_text(rest: Forecast, now: float) -> str:
    """Sentences about what is known at this time, Unix seconds; empty where nothing is."""
    return "; ".join(filter(None, (_work(rest), _end(rest, now), _time(rest), _money(rest))))


def lasting_text(rest: Forecast, deadline: float | None) -> str:
    """The same in words that are true as long as the rest is, for a condition that is read later."""
    return "; ".join(filter(None, (_due(rest, deadline), _money(rest), _work(rest))))


def end_text(rest: Forecast) -> str:
    """How a job has ended, as of its end: in time and within its budget, or not."""
    text = "the job has ended"
    if rest.time_left is not None:
        text += f" {span(abs(rest.time_left))} {'before' if rest.time_left >= 0.0 else 'after'} its deadline"
    if rest.money_left is not None:
        left = rest.money_left
        kept = f"with {cents(left)} of its budget left" if left >= 0.0 else f"{cents(-left)} over its budget"
        text += f"{',' if rest.time_left is not None else ''} {kept}"
    return text


def _due(rest: Forecast, deadline: float | None) -> str:
    if rest.time_left is None or deadline is None:
        return ""
    at = instant(deadline)
    if rest.time_left < 0.0:
        return f"the deadline was {at}"
    if rest.late is None:
        return f"the deadline is {at}"
    return f"the deadline {at} is missed with probability {share(rest.late)}"


def _work(rest: Forecast) -> str:
    return "" if rest.progress is None else f"{share(rest.progress)} of the samples are done"


def _end(rest: Forecast, now: float) -> str:
    if rest.finish_at is None:
        return ""
    text = f"the rest takes {span(max(0.0, rest.finish_at - now))} at the present rate, until {instant(rest.finish_at)}"
    if rest.cost_left is not None and rest.money_left is None:
        text += f", and costs {dollars(rest.cost_left)}"
    return text


def _time(rest: Forecast) -> str:
    left = rest.time_left
    if left is None:
        return ""
    if left < 0.0:
        return f"the deadline passed {span(-left)} ago"
    if rest.late is None:
        return f"{span(left)} are left to the deadline"
    return f"the deadline is in {span(left)}, and is missed with a probability of {share(rest.late)}"


def _money(rest: Forecast) -> str:
    left = rest.money_left
    if left is None:
        return ""
    if left < 0.0:
        return f"the budget is exceeded by {cents(-left)}"
    if rest.cost_left is None or rest.over is None:
        return f"{cents(left)} of the budget are left"
    risk = f"too little with probability {share(rest.over)}"
    return f"{cents(left)} of the budget are left for a rest of {dollars(rest.cost_left)}, {risk}"
