"""The account of a job: what it has cost, and what moving it has saved."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Account:
    """Dollars, and Unix seconds.

    spent, saved: settled up to `since`. since: when the meter was last read; None while the job holds no chips.
    cost_per_hour: what runs on the meter; None where the price is unknown (the time is then not counted, and
    `unpriced_seconds` says how much that was). saving_per_hour: against where the job would be without its moves.
    saved may be negative: moves that were undone cost something and brought nothing.
    """

    spent: float = 0.0
    saved: float = 0.0
    since: float | None = None
    cost_per_hour: float | None = None
    saving_per_hour: float = 0.0
    unpriced_seconds: float = 0.0

    def settled(self, now: float) -> "Account":
        """The account with everything up to now booked; the meter runs on."""
        if self.since is None:
            return self
        seconds = max(0.0, now - self.since)
        hours = seconds / 3600
        return replace(
            self,
            spent=self.spent + (self.cost_per_hour or 0.0) * hours,
            saved=self.saved + self.saving_per_hour * hours,
            unpriced_seconds=self.unpriced_seconds + (seconds if self.cost_per_hour is None else 0.0),
            since=max(now, self.since),
        )

    def started(self, cost_per_hour: float | None, now: float) -> "Account":
        """The meter runs at this price from now on."""
        return replace(self.settled(now), since=now, cost_per_hour=cost_per_hour)

    def stopped(self, now: float) -> "Account":
        """The job holds no chips any more."""
        return replace(self.settled(now), since=None, cost_per_hour=None)

    def charged(self, dollars: float) -> "Account":
        """A move's own cost counts against what moving saved. The chips it held are in `spent` already."""
        return replace(self, saved=self.saved - dollars)

    def moved(
        self,
        *,
        baseline: float | None,
        baseline_cost: float | None,
        realised: float | None,
        realised_cost: float | None,
        now: float,
    ) -> "Account":
        """A move delivered: from samples/s `baseline` at $/million `baseline_cost` to `realised` at `realised_cost`.

        The saving runs on against the first baseline: (c0 - c2)·s2 = (c0 - c1)·s1·(s2/s1) + (c1 - c2)·s2.
        """
        account = self.settled(now)
        if not baseline or baseline_cost is None or not realised or realised_cost is None:
            return account
        carried = account.saving_per_hour * realised / baseline
        gained = (baseline_cost - realised_cost) / 1e6 * realised * 3600
        return replace(account, saving_per_hour=carried + gained)
