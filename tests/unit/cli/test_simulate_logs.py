"""Logs that others have published: a few hundred lines in the form of each, with bad ones among them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random

import pytest

from rightpool.cli.simulate.logs import EPOCH, Jobs, alibaba_jobs, helios_jobs, philly_jobs
from rightpool.hardware.accelerator import Price
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.pool import Pool

BEGAN = 1_500_000_000
COUNT = 300


def pool(name: str, key: str) -> Pool:
    chip = load_catalog().get(key)
    return Pool(name, chip, 8, "nvidia.com/gpu", {}, chip.intra_link, chip.inter_link, Price(1.0), 64, 64)


POOLS = {"a10": pool("a10", "A10-24GB"), "a100": pool("a100", "A100-SXM4-80GB"), "v100": pool("v100", "V100-SXM2-16GB")}


def text_of(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def philly(number: int, random: Random) -> dict[str, object]:
    came = BEGAN + 100 * number
    begin = came + random.randrange(600)
    chips = random.choice([1, 2, 4, 8])
    attempts = []
    for _ in range(random.choice([1, 1, 2])):
        end = begin + random.randrange(60, 9000)
        detail = [{"ip": "m1", "gpus": [f"gpu{chip}" for chip in range(chips)]}]
        attempts.append({"start_time": text_of(begin), "end_time": text_of(end), "detail": detail})
        begin = end + 7
    return {
        "status": random.choice(["Pass", "Killed", "Failed"]),
        "vc": "ee9e8c",
        "jobid": f"application_1506638472019_{number}",
        "attempts": attempts,
        "submitted_time": text_of(came),
        "user": "ce2f4c",
    }


def helios(number: int, random: Random) -> str:
    came = BEGAN + 100 * number
    begin, chips = came + random.randrange(600), random.choice([1, 4, 8, 16])
    end = begin + random.randrange(1, 9000)
    times = ",".join(map(text_of, (came, begin, end)))
    return f"{number},u{number % 9},vc7,job,{chips},{4 * chips},{max(1, chips // 8)},COMPLETED,{times},{end - begin},q1"


def pod(number: int, random: Random) -> str:
    came = 100 * number
    begin = came + random.randrange(600)
    kind = random.choice(["", "nan", "V100M16|V100M32", "A10"])
    chips = random.choice([1, 2, 8])
    return f"openb-pod-{number},4000,15258,{chips},1000,{kind},LS,Succeeded,{came},{begin + 777},{begin}"


def spot(number: int, random: Random) -> str:
    kind = random.choice(["A10", "A100-SXM4-80GB", "GPU-series-1"])
    return f"{number},{number % 20},{kind},8,{random.choice([1, 8])},{random.choice([1, 4])},{100 * number},4000,Spot"


HELIOS = "job_id,user,vc,jobname,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
SPOT = "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type"


def table(head: str, line: Callable[[int, Random], str]) -> list[str]:
    random = Random(3)
    return [head, *(line(number, random) for number in range(COUNT))]


def wrong(found: Jobs) -> dict[int, str]:
    return {line.number: line.why for line in found[1]}


@pytest.mark.parametrize("indent", [None, 4], ids=["a line each", "indented"])
def test_philly(indent: int | None) -> None:
    random = Random(1)
    jobs = [philly(number, random) for number in range(COUNT)]
    jobs[5]["attempts"] = []
    text = json.dumps(jobs, indent=indent)
    if indent is None:
        text = "[" + ",\n".join(json.dumps(job) for job in jobs) + "]"
    found, bad = philly_jobs(text.split("\n"), POOLS, "v100")
    assert bad == []
    assert len(found) == COUNT - 1, "one held no chips"
    first, made = found[0], jobs[0]
    assert first.job == "ee9e8c/application-1506638472019-0"
    assert text_of(first.arrived) == made["submitted_time"]
    assert text_of(first.ended) == made["attempts"][-1]["end_time"]  # type: ignore[index]
    assert {job.result for job in found} == {"Completed", "Failed"}


@pytest.mark.parametrize("indent", [None, 4], ids=["a line each", "indented"])
def test_bad_jobs_of_philly_are_named_by_their_lines(indent: int | None) -> None:
    random = Random(1)
    jobs = [philly(number, random) for number in range(COUNT)]
    jobs[10]["submitted_time"] = "yesterday"
    jobs[20]["attempts"] = 7
    texts = [json.dumps(job, indent=indent) for job in jobs]
    texts[30] = texts[30].replace(":", "", 1)
    lines = "\n".join(texts).split("\n")
    begins = [number for number, line in enumerate(lines, 1) if line.startswith("{")]
    found = philly_jobs(lines, POOLS, "v100")
    assert len(found[0]) == COUNT - 3
    assert sorted(wrong(found)) == [begins[10], begins[20], begins[30]]
    assert wrong(found)[begins[10]].startswith("submitted_time is 'yesterday'")


def test_helios() -> None:
    lines = table(HELIOS, helios)
    lines[7] = lines[7].replace("vc7", "vc7,more")
    lines[8] = lines[8].replace("COMPLETED", "PENDING")
    lines[9] = helios(8, Random(1)).replace(text_of(BEGAN + 800), text_of(BEGAN + 99_999))
    lines[10] = "\0\udcff;garbage"
    lines[11] = lines[11].replace(",1,", ",one,").replace(",4,16,", ",x,16,").replace(",8,32,", ",x,32,")
    lines[11] = lines[11].replace(",16,64,", ",x,64,")
    found = helios_jobs(lines, POOLS, "v100")
    assert len(found[0]) == COUNT - 5
    assert list(wrong(found)) == [8, 10, 11, 12]
    assert wrong(found)[10] == "it starts before it is submitted"
    assert "gpu_num" in wrong(found)[12]
    sixteen = [job for job in found[0] if job.stays[0].placement.chips == 16]
    assert {job.stays[0].placement.replicas for job in sixteen} == {2}


def test_pods_of_alibaba() -> None:
    lines = table(PODS, pod)
    lines[50] = lines[50].replace("Succeeded", "Running")
    lines[51] = lines[51].rsplit(",", 1)[0] + ",soon"
    found = alibaba_jobs(lines, POOLS, "a100")
    assert len(found[0]) == COUNT - 2
    assert list(wrong(found)) == [52]
    where = {job.stays[0].placement.pool: job.spec for job in found[0]}
    assert where == {
        "a100": {},
        "v100": {"placement": {"pools": {"allow": ["v100"]}}},
        "a10": {"placement": {"pools": {"allow": ["a10"]}}},
    }
    assert found[0][0].arrived == EPOCH


def test_jobs_of_alibaba() -> None:
    lines = table(SPOT, spot)
    found = alibaba_jobs(lines, POOLS, "v100")
    assert len(found[0]) == COUNT
    assert {job.stays[0].placement.pool for job in found[0]} == {"a10", "a100", "v100"}
    assert {job.ended - job.arrived for job in found[0]} == {4000.0}


@pytest.mark.parametrize("read", [helios_jobs, alibaba_jobs], ids=["helios", "alibaba"])
def test_a_table_of_other_columns_says_which_are_wanted(read: Callable[..., Jobs]) -> None:
    found, bad = read(["a,b,c", "1,2,3"], POOLS, "v100")
    assert found == []
    assert [line.number for line in bad] == [1]
    assert bad[0].why.startswith("the columns must be ")


@pytest.mark.parametrize("read", [philly_jobs, helios_jobs, alibaba_jobs], ids=["philly", "helios", "alibaba"])
def test_no_bytes_stop_a_reader(read: Callable[..., Jobs]) -> None:
    random = Random(5)
    heads = ["", "[", "{", HELIOS, PODS, SPOT]
    for _ in range(200):
        noise = "".join(random.choice('{}[]",:\n\r\t\0 1e9nan-') for _ in range(120))
        read([random.choice(heads), *noise.split("\n")], POOLS, "v100")
