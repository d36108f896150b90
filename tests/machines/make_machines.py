"""Makes the recorded machines that were not at hand: what their kernels and GPU libraries would say, by public descriptions.
Run it after a change: python3 tests/machines/make_machines.py (epyc-vm is a real recording, its group and kernel names replaced, and is left alone)."""
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
CPUS, NODES, PCI, IB = "sys/devices/system/cpu/", "sys/devices/system/node/", "sys/bus/pci/devices/", "sys/class/infiniband/"
GIB = 1 << 30
AVX2 = "fpu sse2 avx avx2 fma f16c"
AVX512 = AVX2 + " avx512f avx512dq avx512bw avx512vl"
SPR = AVX512 + " avx512_vnni avx_vnni avx512_bf16 avx512_fp16 amx_bf16 amx_tile amx_int8"
GENOA = AVX512 + " avx512_vnni avx512_bf16"


def spans(members):
    """0-3,8: the kernel's way to write a list."""
    text, start = [], None
    for i in sorted(members):
        if start is None or i != last + 1:
            if start is not None:
                text.append(f"{start}-{last}" if last > start else f"{start}")
            start = i
        last = i
    text.append(f"{start}-{last}" if last > start else f"{start}")
    return ",".join(text)


def cpu(files, model, flags, packages, cores, smt, caches, nodes_per_package=1, gib=64):
    """caches: (level, type, size, physical cores that share it). Siblings are numbered as Linux does it: i and i + all cores."""
    total = packages * cores

    def siblings(group):
        return [c + total * t for t in range(smt) for c in group]

    files["proc/cpuinfo"] = f"model name: {model}\nflags: {flags}\n" if model else flags
    files[CPUS + "online"] = spans(range(total * smt)) + "\n"
    for core in range(total):
        files[f"{CPUS}cpu{core}/topology/core_cpus_list"] = spans(siblings([core])) + "\n"
    for package in range(packages):
        group = range(package * cores, (package + 1) * cores)
        files[f"{CPUS}cpu{group[0]}/topology/package_cpus_list"] = spans(siblings(group)) + "\n"
    for index, (level, kind, size, share) in enumerate(caches):
        at = f"{CPUS}cpu0/cache/index{index}/"
        files |= {at + "level": f"{level}\n", at + "type": kind + "\n", at + "size": size + "\n"}
        for first in range(0, total if index == len(caches) - 1 else 1, share):
            files[f"{CPUS}cpu{first}/cache/index{index}/shared_cpu_list"] = spans(siblings(range(first, first + share))) + "\n"
    count = packages * nodes_per_package
    files[NODES + "online"] = spans(range(count)) + "\n"
    for node in range(count):
        group = range(node * total // count, (node + 1) * total // count)
        files[f"{NODES}node{node}/cpulist"] = spans(siblings(group)) + "\n"
        files[f"{NODES}node{node}/meminfo"] = f"Node {node} MemTotal: {gib * GIB // 1024 // count} kB\n"
    files["proc/meminfo"] = f"MemTotal: {gib * GIB // 1024} kB\nMemAvailable: {gib * GIB // 1024 * 9 // 10} kB\nHugePages_Total: 0\nHugepagesize: 2048 kB\n"
    files["proc/self/status"] = f"Cpus_allowed_list: {spans(range(total * smt))}\nMems_allowed_list: {spans(range(count))}\n"
    files["sys/kernel/mm/transparent_hugepage/enabled"] = "always [madvise] never\n"
    files["proc/sys/kernel/osrelease"] = "6.8.0-45-generic\n"
    files["proc/self/cgroup"] = "0::/user.slice\n"
    files["sys/fs/cgroup/user.slice/cpu.max"] = "max 100000\n"
    files["sys/fs/cgroup/user.slice/memory.max"] = "max\n"


def frequency(files, driver, governor, largest, cap=None, preference=None):
    at = CPUS + "cpu0/cpufreq/"
    files |= {at + "scaling_driver": driver + "\n", at + "scaling_governor": governor + "\n"}
    files |= {at + "cpuinfo_max_freq": f"{largest}000\n", at + "scaling_max_freq": f"{cap or largest}000\n"}
    if preference:
        files[at + "energy_performance_preference"] = preference + "\n"


def pci(files, address, pci_class, vendor, device, node, width=(16, 16), speed=(32, 32)):
    at = f"{PCI}{address}/"
    files |= {at + "class": f"0x{pci_class}\n", at + "vendor": f"0x{vendor}\n", at + "device": f"0x{device}\n", at + "numa_node": f"{node}\n"}
    files |= {at + "current_link_width": f"{width[0]}\n", at + "max_link_width": f"{width[1]}\n"}
    files |= {at + "current_link_speed": f"{speed[0]:.1f} GT/s PCIe\n", at + "max_link_speed": f"{speed[1]:.1f} GT/s PCIe\n"}


def rapl(files, denied, packages):
    for package in range(packages):
        files[f"sys/class/powercap/intel-rapl:{package}/name"] = f"package-{package}\n"
        denied.append(f"sys/class/powercap/intel-rapl:{package}/energy_uj")


def write(name, files, denied=(), gpus=None):
    libraries = [
        gpus or {"library": "NVML", "missing": "libnvidia-ml.so.1: cannot open shared object file: No such file or directory", "devices": []},
        {"library": "ROCm SMI", "missing": "librocm_smi64.so: cannot open shared object file: No such file or directory", "devices": []},
    ]
    record = {"schema": "hpqf.machine", "version": 1, "files": files, "denied": sorted(denied), "gpu_libraries": libraries}
    (HERE / name).mkdir(exist_ok=True)
    (HERE / name / "machine.json").write_text(json.dumps(record, indent=1) + "\n")


def nvidia(driver, devices):
    return {"library": "NVML", "driver": driver, "devices": [{"index": i, "vendor": "NVIDIA"} | d for i, d in enumerate(devices)]}


def xeon(files, cores=56):
    cpu(files, "Intel(R) Xeon(R) Platinum 8480+", SPR, 2, cores, 2, [(1, "Data", "48K", 1), (1, "Instruction", "32K", 1), (2, "Unified", "2048K", 1), (3, "Unified", "107520K", cores)], 1, 2048)
    frequency(files, "intel_pstate", "powersave", 3800, preference="balance_performance")


def main():
    files, denied = {}, []
    xeon(files)
    rapl(files, denied, 2)
    write("xeon-spr-2s", files, denied)

    files, denied = {}, []
    cpu(files, "AMD EPYC 9654 96-Core Processor", GENOA, 2, 96, 1, [(1, "Data", "32K", 1), (1, "Instruction", "32K", 1), (2, "Unified", "1024K", 1), (3, "Unified", "32768K", 8)], 4, 1536)
    frequency(files, "acpi-cpufreq", "powersave", 2400, cap=1500)
    rapl(files, denied, 2)
    write("epyc-genoa-nps4", files, denied)

    files = {}
    arm = "Features: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp asimddp sve i8mm bf16\nCPU implementer: 0x41\nCPU part: 0xd40\n"
    cpu(files, "", arm, 1, 64, 1, [(1, "Data", "64K", 1), (1, "Instruction", "64K", 1), (2, "Unified", "1024K", 1), (3, "Unified", "32768K", 64)], 1, 128)
    write("graviton3", files)

    files = {}
    cpu(files, "Intel(R) Xeon(R) Platinum 8259CL CPU @ 2.50GHz", AVX512 + " avx512_vnni hypervisor", 1, 4, 2, [(1, "Data", "32K", 1), (1, "Instruction", "32K", 1), (2, "Unified", "1024K", 1), (3, "Unified", "36608K", 4)], 1, 32)
    files["proc/self/cgroup"] = "0::/\n"
    files |= {"sys/fs/cgroup/cpu.max": "150000 100000\n", "sys/fs/cgroup/memory.max": f"{4 * GIB}\n"}
    files["sys/kernel/mm/transparent_hugepage/enabled"] = "always madvise [never]\n"
    write("container-1.5-cpus", files)

    files, denied = {}, []
    xeon(files)
    gpus = []
    for i in range(8):
        pci(files, f"0000:{0x1b + 16 * i:02x}:00.0", "030200", "10de", "2330", i // 4)
        pci(files, f"0000:{0x18 + 16 * i:02x}:00.0", "020700", "15b3", "1021", i // 4)
        port = f"{IB}mlx5_{i}/ports/1/"
        files |= {port + "state": "4: ACTIVE\n", port + "rate": "400 Gb/sec (4X NDR)\n", port + "link_layer": "InfiniBand\n", f"{IB}mlx5_{i}/device/numa_node": f"{i // 4}\n"}
        gpus.append({
            "name": "NVIDIA H100 80GB HBM3", "memory_bytes": 85520809984, "memory_used_bytes": 0, "ecc": True, "power_limit_watts": 700.0, "power_default_watts": 700.0,
            "power_least_watts": 200.0, "power_most_watts": 700.0, "sm_mhz": 345, "largest_sm_mhz": 1980, "memory_mhz": 2619, "largest_memory_mhz": 2619, "mig": False,
            "mig_after_reset": False, "nvlink_version": 4, "uuid": f"GPU-5a0e{i:04x}", "pci_address": f"00000000:{0x1b + 16 * i:02X}:00.0", "pci_id": "10de:2330",
            "architecture": "cc 9.0", "nvlinks": 18, "nvlinks_active": 18, "nvlink_to_switch": True, "pcie_width": 16, "pcie_largest_width": 16, "pcie_generation": 5,
            "pcie_largest_generation": 5, "peers": ["" if i == j else "ok" for j in range(8)],
        })
    rapl(files, denied, 2)
    write("dgx-h100", files, denied, nvidia("550.90.07", gpus))

    files = {}
    cpu(files, "AMD EPYC 7413 24-Core Processor", AVX2, 1, 24, 2, [(1, "Data", "32K", 1), (1, "Instruction", "32K", 1), (2, "Unified", "512K", 1), (3, "Unified", "32768K", 6)], 1, 256)
    pci(files, "0000:17:00.0", "030200", "10de", "20b0", 0, speed=(16, 16))
    parts = [("3g.20gb", 20, 3, 42), ("2g.10gb", 10, 2, 28), ("1g.5gb", 5, 1, 14)]
    write("a100-mig", files, gpus=nvidia("535.183.01", [{
        "name": "NVIDIA A100-SXM4-40GB", "memory_bytes": 42949672960, "ecc": True, "power_limit_watts": 400.0, "power_default_watts": 400.0, "mig": True, "mig_after_reset": True,
        "uuid": "GPU-0c5f11aa", "pci_id": "10de:20b0", "architecture": "cc 8.0", "pcie_width": 16, "pcie_largest_width": 16, "pcie_generation": 4, "pcie_largest_generation": 4,
        "partitions": [{"name": f"NVIDIA A100-SXM4-40GB MIG {n}", "uuid": f"MIG-0000000{i}", "memory_bytes": g * GIB, "slices": s, "multiprocessors": m} for i, (n, g, s, m) in enumerate(parts)],
    }]))

    files = {}
    cpu(files, "AMD Ryzen 9 5950X 16-Core Processor", AVX2, 1, 16, 2, [(1, "Data", "32K", 1), (1, "Instruction", "32K", 1), (2, "Unified", "512K", 1), (3, "Unified", "32768K", 8)], 1, 128)
    frequency(files, "amd-pstate-epp", "powersave", 5083, preference="balance_power")
    card = {
        "name": "NVIDIA GeForce RTX 4090", "memory_bytes": 25757220864, "ecc": False, "power_default_watts": 450.0, "power_least_watts": 150.0, "power_most_watts": 600.0,
        "pci_id": "10de:2684", "architecture": "cc 8.9", "pcie_largest_width": 16, "pcie_generation": 1, "pcie_largest_generation": 4,
    }
    for address in ("0000:01:00.0", "0000:02:00.0"):
        pci(files, address, "030000", "10de", "2684", -1, width=(8, 16), speed=(2.5, 16))
    no = "GPU does not support it"
    write("two-4090", files, gpus=nvidia("560.35.03", [
        card | {"power_limit_watts": 300.0, "pcie_width": 8, "slowed_by": ["power cap"], "peers": ["", no]},
        card | {"power_limit_watts": 450.0, "pcie_width": 16, "slowed_by": ["thermal (hardware)"], "peers": [no, ""]},
    ]))


main()
