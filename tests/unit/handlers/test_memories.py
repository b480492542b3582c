"""kopf's memory of objects."""

from __future__ import annotations

from rightpool.handlers.operator import NoMemories


async def test_kopf_keeps_no_record_of_an_object() -> None:
    memories = NoMemories()
    for number in range(3):
        await memories.recall({"metadata": {"uid": f"u{number}"}}, noticed_by_listing=True)
    assert list(memories.iter_all_memories()) == []
