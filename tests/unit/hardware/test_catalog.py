"""The catalog: the data that ships, the rules of its rows, and the errors of bad rows."""

from __future__ import annotations

import csv
import os
import re
from importlib import resources
from pathlib import Path

import pytest

from rightpool.api.pool import LinkKind
from rightpool.hardware.accelerator import Link
from rightpool.hardware.catalog import DATA_FILES, UnknownAcceleratorError, load_catalog, parse_catalog
from rightpool.hardware.rows import CatalogError, LinkRow, read_rows
from rightpool.hardware.vendors.cpu import CPU

CATALOG = load_catalog()

REQUIRED = [
    "A100-SXM4-40GB",
    "A100-SXM4-80GB",
    "A100-PCIE-40GB",
    "A100-PCIE-80GB",
    "A10G-24GB",
    "L4-24GB",
    "T4-16GB",
    "V100-SXM2-16GB",
    "H100-SXM5-80GB",
    "H100-PCIE-80GB",
    "H100-NVL-94GB",
    "H200-SXM-141GB",
    "TPU-v4",
    "TPU-v5e",
    "TPU-v5p",
    "TPU-v6e",
    "CPU",
]


@pytest.mark.parametrize("key", REQUIRED)
def test_every_accelerator_has_figures_and_sources(key: str) -> None:
    accelerator = CATALOG.get(key)
    assert accelerator.peak_flops and all(rate > 0 for rate in accelerator.peak_flops.values())
    assert accelerator.memory_bytes > 10**9
    assert accelerator.memory_bandwidth > 0
    assert accelerator.intra_link.bytes_per_second > 0
    assert accelerator.inter_link.bytes_per_second > 0
    for field in ("peak_flops", "memory_bytes", "memory_bandwidth", "intra_link", "inter_link"):
        assert accelerator.provenance[field]
    assert "20" in accelerator.provenance["peak_flops"], "the day it was read"


def test_known_figures() -> None:
    a100, a10g = CATALOG.get("A100-SXM4-80GB"), CATALOG.get("A10G-24GB")
    assert a100.peak_flops["bf16"] == 312e12
    assert a100.memory_bandwidth == 2039e9
    assert a100.intra_link.kind is LinkKind.NVLINK
    assert a100.intra_link.bytes_per_second == 199e9
    assert a10g.peak_flops["bf16"] == 70e12, "not the A10's 125"
    assert not a10g.verified
    assert a10g.list_price.on_demand == 1.006
    assert CATALOG.get("A10-24GB").peak_flops["bf16"] == 125e12


def test_dtypes_that_a_chip_lacks_are_absent() -> None:
    for key in ("V100-SXM2-16GB", "T4-16GB"):
        assert "bf16" not in CATALOG.get(key).peak_flops
    for key in ("A100-SXM4-80GB", "A10G-24GB", "TPU-v5p", "TPU-v6e"):
        assert "fp8" not in CATALOG.get(key).peak_flops, "emulation is no support"
    for key in ("L4-24GB", "H100-SXM5-80GB"):
        assert "fp8" in CATALOG.get(key).peak_flops


def test_recalled_figures_are_marked() -> None:
    price = CATALOG.list_price("tpu-v4")
    assert price is not None and not price.verified and "recalled" in price.provenance
    assert "recalled" in CATALOG.get("TPU-v5e").provenance["list_price"]
    assert "recalled" in CATALOG.get("A10G-24GB").provenance["peak_flops"]
    assert all(not row.verified for rows in CATALOG.prices.values() for row in rows if "recalled" in row.source)


def test_the_development_chip_is_marked_and_has_no_price() -> None:
    cpu = CATALOG.get("CPU")
    assert cpu.vendor == CPU and not cpu.verified
    assert "development only" in cpu.provenance["peak_flops"]
    assert cpu.list_price.on_demand is None


def test_prices_are_found_by_the_instance_type_that_nodes_are_labelled_with() -> None:
    by_label = CATALOG.list_price("Standard_ND96asr_v4")
    assert by_label is not None and by_label.per_chip_hour == 3.40
    assert CATALOG.list_price("m5.large") is None


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("A10", "A10G-24GB"),
        ("A10G", "A10G-24GB"),
        ("a100-sxm4-80gb", "A100-SXM4-80GB"),
        ("NVIDIA-H200", "H200-SXM-141GB"),
        ("H100", "H100-SXM5-80GB"),
        ("TPU-v5", "TPU-v5e"),
        ("tpu-v6e-slice", "TPU-v6e"),
        ("Tesla-T4", "T4-16GB"),
    ],
)
def test_an_unknown_key_gets_a_suggestion(key: str, expected: str) -> None:
    with pytest.raises(UnknownAcceleratorError) as caught:
        CATALOG.get(key)
    assert str(caught.value).startswith(f"unknown accelerator '{key}'; did you mean ")
    assert expected in caught.value.suggestions
    assert len(caught.value.suggestions) <= 3


def test_a_dissimilar_key_gets_no_suggestion() -> None:
    with pytest.raises(UnknownAcceleratorError, match=r"^unknown accelerator '@@@'$"):
        CATALOG.get("@@@")


def test_labels_name_chips() -> None:
    assert CATALOG.by_label("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB") == "A100-SXM4-80GB"
    assert CATALOG.by_label("node.kubernetes.io/instance-type", "g5.12xlarge") == "A10G-24GB"
    assert CATALOG.by_label("node.kubernetes.io/instance-type", "g5g.xlarge") == "T4G-16GB", "not the A10G of g5"
    assert CATALOG.by_label("node.kubernetes.io/instance-type", "g6f.xlarge") is None, "part of an L4"
    assert CATALOG.by_label("node.kubernetes.io/instance-type", "g4-standard-24") is None, "half of a chip"
    assert CATALOG.by_label("karpenter.k8s.aws/instance-gpu-name", "a100", 40960) == "A100-SXM4-40GB"
    assert CATALOG.by_label("karpenter.k8s.aws/instance-gpu-name", "a100", 81920) == "A100-SXM4-80GB"
    assert CATALOG.by_label("karpenter.k8s.aws/instance-gpu-name", "a100") is None, "which of the two?"
    assert CATALOG.by_label("no.such/label", "x") is None


def test_a_link_by_its_kind() -> None:
    for key, rate in (("A100-SXM4-80GB", 24e9), ("H100-SXM5-80GB", 25e9), ("V100-SXM2-16GB", 12e9), ("TPU-v4", 12e9)):
        assert CATALOG.link(LinkKind.PCIE, CATALOG.get(key)) == Link(LinkKind.PCIE, rate)
    assert CATALOG.link(LinkKind.NVLINK, CATALOG.get("A100-SXM4-80GB")) == Link(LinkKind.NVLINK, 199e9)
    assert CATALOG.links[LinkKind.NVLINK].bytes_per_second == 53e9
    without = {LinkKind.EFA}
    assert set(CATALOG.links) == set(LinkKind) - without
    assert all(CATALOG.link(kind, CATALOG.get("A100-SXM4-80GB")) is None for kind in without)


@pytest.mark.parametrize("key", sorted(CATALOG.accelerators))
def test_figures_do_not_contradict_each_other(key: str) -> None:
    """Narrower numbers are never slower; sparse rates, bits for bytes and boards for chips show in the ratios."""
    chip = CATALOG.get(key)
    rates = chip.peak_flops
    order = [rates[dtype] for dtype in ("fp32", "tf32", "bf16", "fp8") if dtype in rates]
    assert order == sorted(order)
    halves = 2 if chip.arch == "cdna1" else 1  # its matrix units compute bf16 at half the rate of fp16
    for narrow, wide, least, most in (
        ("tf32", "bf16", 1.0, 2.05),
        ("bf16", "fp8", 1.0, 2.05),
        ("bf16", "fp16", halves, halves),
    ):
        if wide in rates and narrow in rates:
            assert least <= rates[wide] / rates[narrow] <= most, (narrow, wide)
    if chip.vendor != CPU:
        widest = max(rates.get("bf16", 0.0), rates.get("fp16", 0.0), rates.get("fp32", 0.0))
        # Inferentia1 keeps weights on the chip, beside which its memory is slow.
        most = 1300 if chip.arch == "neuron-v1" else 600
        assert 15 < widest / chip.memory_bandwidth < most, "operations per byte of memory traffic"
        assert 0.004 < chip.memory_bytes / chip.memory_bandwidth < 0.4, "seconds to read the memory once"
    assert chip.intra_link.bytes_per_second < chip.memory_bandwidth
    named = re.search(r"-(\d+)GB$", key)
    assert named is None or chip.memory_bytes == int(named[1]) * 10**9
    if chip.power_watts and chip.vendor != CPU:
        assert 1e9 < widest / chip.power_watts < 4e12


# --- bad files -------------------------------------------------------------------------------------------------------


def _file(name: str) -> str:
    return resources.files("rightpool.hardware").joinpath("data", name).read_text(encoding="utf-8")


def _catalog_with(**changed: str) -> None:
    parse_catalog({name: changed.get(name.removesuffix(".csv"), _file(name)) for name in DATA_FILES})


def test_a_bad_cell_is_named_with_file_and_line() -> None:
    broken = _file("accelerators.csv").replace("V100-SXM2-16GB,NVIDIA", "V100-SXM2-16GB,Nvidia", 1)
    with pytest.raises(CatalogError, match=r"accelerators\.csv, line 2, vendor: .*Nvidia is not one of Google, NVIDIA"):
        _catalog_with(accelerators=broken)


@pytest.mark.parametrize("price", ["0", "-3", "nan", "inf", "cheap", ""])
def test_a_price_is_a_positive_number(price: str) -> None:
    broken = _file("prices.csv").replace(",6.88,", f",{price},", 1)
    with pytest.raises(CatalogError, match=r"prices\.csv, line 2, per_chip_hour: "):
        _catalog_with(prices=broken)


def test_a_line_with_too_few_cells_is_refused() -> None:
    with pytest.raises(CatalogError, match=r"line 2: 5 cells are required"):
        read_rows("links.csv", "name,kind,gigabytes_per_second,basis,source\npcie4,PCIe\n", LinkRow)


def test_no_figure_is_both_recalled_and_verified() -> None:
    broken = re.sub(r"recalled,2026-11-21,no", "recalled,2026-11-21,yes", _file("prices.csv"), count=1)
    with pytest.raises(CatalogError, match="recalled and verified"):
        _catalog_with(prices=broken)


def test_a_chip_computes_something() -> None:
    broken = _file("accelerators.csv").replace("TPU-v4,Google,tpu-v4,,,275,,,275,", "TPU-v4,Google,tpu-v4,,,,,,,", 1)
    with pytest.raises(CatalogError, match="names no peak rate"):
        _catalog_with(accelerators=broken)


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("accelerators", ",nvlink3,", ",nvlink9,", "link nvlink9 is not in links.csv"),
        ("accelerators", "aws/g5.xlarge", "aws/g9.xlarge", "price aws/g9.xlarge is not in prices.csv"),
        ("accelerators", "aws/g5.xlarge", "aws/g6.xlarge", "price aws/g6.xlarge is one of L4-24GB"),
        ("accelerators", "A10-24GB,", "A10G-24GB,", "A10G-24GB is there twice"),
        ("prices", "H200-SXM-141GB,8", "H2000,8", "H2000 is not in accelerators.csv"),
        ("labels", "NVIDIA-L4,,L4-24GB", "NVIDIA-L4,,L5-24GB", "L5-24GB is not in accelerators.csv"),
        (
            "labels",
            "nvidia.com/gpu.product,Tesla-T4",
            "nvidia.com/gpu.name,Tesla-T4",
            "gpu.name is not read for T4-16GB",
        ),
        ("labels", "NVIDIA-L4,,L4-24GB", "NVIDIA-L4,,TPU-v4", "gpu.product is not read for TPU-v4"),
    ],
)
def test_rows_point_to_rows_that_are_there(file: str, old: str, new: str, message: str) -> None:
    text = _file(f"{file}.csv")
    assert old in text
    with pytest.raises(CatalogError, match=re.escape(message)):
        _catalog_with(**{file: text.replace(old, new, 1)})


def test_the_catalog_is_read_once() -> None:
    assert load_catalog() is CATALOG


def test_figures_agree_with_the_collected_ones() -> None:
    """Every figure that the collected table gives as a plain number is the catalog's, within rounding."""
    shared = os.environ.get("RIGHTPOOL_SHARED")
    table = Path(shared or "", "data/catalog/hardware_catalog.csv")
    if not shared or not table.is_file():
        pytest.skip("RIGHTPOOL_SHARED does not name a folder with data/catalog/hardware_catalog.csv")
    names = {
        "Trainium1": "Trainium1-32GB",
        "Trainium2": "Trainium2-96GB",
        "Inferentia2": "Inferentia2-32GB",
        "T4": "T4-16GB",
        "A10": "A10-24GB",
        "A30": "A30-24GB",
        "A40": "A40-48GB",
        "L4": "L4-24GB",
    }
    columns = {"fp32_tflops": "fp32", "tf32_tflops": "tf32", "bf16_tflops": "bf16", "fp16_tflops": "fp16"}
    compared = 0
    for row in csv.DictReader(table.read_text(encoding="utf-8").splitlines()):
        accelerator = CATALOG.accelerators.get(names.get(row["chip"], row["chip"]))
        if accelerator is None:
            continue
        for column, dtype in columns.items():
            if re.fullmatch(r"[0-9.]+", row[column] or ""):
                assert accelerator.peak_flops[dtype] == pytest.approx(float(row[column]) * 1e12), (row["chip"], dtype)
                compared += 1
        for column, value in (("hbm_gb", accelerator.memory_bytes), ("hbm_gbps", accelerator.memory_bandwidth)):
            if re.fullmatch(r"[0-9.]+", row[column]):
                assert value == pytest.approx(float(row[column]) * 1e9), (row["chip"], column)
                compared += 1
    assert compared > 60


def test_prices_that_two_sources_give_are_verified() -> None:
    for instance, sources in {"NC24ads_A100_v4": 2, "NC40ads_H100_v5": 2, "g6.xlarge": 1}.items():
        price = CATALOG.list_price(instance)
        assert price is not None and price.verified is (sources == 2), instance


@pytest.mark.parametrize(
    ("instance", "key"),
    [
        ("g3s.xlarge", "M60-8GB"),
        ("g7e.48xlarge", "RTXPRO6000-96GB"),
        ("p6e-gb200.36xlarge", "GB200-186GB"),
        ("a4-highgpu-8g", "B200-SXM-180GB"),
        ("Standard_NC24rs_v3", "V100-PCIE-16GB"),
        ("Standard_NV36ads_A10_v5", "A10-24GB"),
        ("BM.GPU.H100.8", "H100-SXM5-80GB"),
        ("BM.GPU.GB200-v2.4", "GB200-186GB"),
    ],
)
def test_instance_types_of_clouds_name_chips(instance: str, key: str) -> None:
    assert CATALOG.by_label("node.kubernetes.io/instance-type", instance) == key


def test_a_part_of_a_chip_is_not_taken_for_the_whole() -> None:
    for instance in ("Standard_NV6ads_A10_v5", "Standard_NV12ads_V710_v5", "g4-standard-6", "gr6f.4xlarge"):
        assert CATALOG.by_label("node.kubernetes.io/instance-type", instance) is None, instance
