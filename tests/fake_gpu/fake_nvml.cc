// A library with the functions of NVML that are called, in its C interface, for the test of the code that loads it: two
// GPUs, one capped in power, one split by MIG; a third cannot be opened. It has no nvmlDeviceGetNvLinkVersion, as an
// old driver would not.
#include <cstdio>
#include <cstring>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

using Uint = unsigned int;
using Ulonglong = unsigned long long;
constexpr int kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3, kNoPermission = 4, kNotFound = 6;

struct Pci {
  char legacy[16];
  Uint domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct Memory {
  Ulonglong total, free, used;
};
struct Attributes {
  Uint multiprocessors, copy, decoders, encoders, jpeg, ofa, gpu_slices, compute_slices;
  Ulonglong memory_mb;
};

// Handles: 1 and 2 the GPUs, 11 an instance of the second.
using Device = const char*;
const char kFirst[] = "GPU-11111111-aaaa", kSecond[] = "GPU-22222222-bbbb", kPart[] = "MIG-33333333-cccc";
bool initialised = false;

int put(char* out, Uint length, const char* text) {
  if (std::strlen(text) >= length) return 7;
  std::snprintf(out, length, "%s", text);
  return kSuccess;
}

}  // namespace

FAKE int nvmlInit_v2() {
  initialised = true;
  return kSuccess;
}
FAKE int nvmlShutdown() {
  initialised = false;
  return kSuccess;
}
FAKE const char* nvmlErrorString(int code) { return code == kNoPermission ? "Insufficient Permissions" : "Other"; }
FAKE int nvmlSystemGetDriverVersion(char* out, Uint length) { return put(out, length, "550.54.15"); }
FAKE int nvmlDeviceGetCount_v2(Uint* count) {
  *count = initialised ? 3 : 0;
  return initialised ? kSuccess : 1;
}
FAKE int nvmlDeviceGetHandleByIndex_v2(Uint index, Device* device) {
  if (index > 2) return kInvalidArgument;
  if (index == 2) return kNoPermission;
  *device = index == 0 ? kFirst : kSecond;
  return kSuccess;
}
FAKE int nvmlDeviceGetName(Device device, char* out, Uint length) {
  return put(out, length, device == kPart ? "NVIDIA A100-SXM4-40GB MIG 3g.20gb" : "NVIDIA A100-SXM4-40GB");
}
FAKE int nvmlDeviceGetUUID(Device device, char* out, Uint length) { return put(out, length, device); }
FAKE int nvmlDeviceGetPciInfo_v3(Device device, Pci* pci) {
  std::memset(pci, 0, sizeof *pci);
  pci->bus = device == kFirst ? 0x17 : 0x65;
  pci->pci_device_id = 0x20b010de;
  std::snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
  return kSuccess;
}
FAKE int nvmlDeviceGetMemoryInfo(Device, Memory* memory) {
  *memory = {Ulonglong{40} << 30, Ulonglong{39} << 30, Ulonglong{1} << 30};
  return kSuccess;
}
FAKE int nvmlDeviceGetCudaComputeCapability(Device, int* major, int* minor) {
  *major = 8;
  *minor = 0;
  return kSuccess;
}
FAKE int nvmlDeviceGetEccMode(Device device, int* current, int* pending) {
  *current = *pending = device == kFirst ? 1 : 0;
  return kSuccess;
}
FAKE int nvmlDeviceGetPowerManagementLimit(Device device, Uint* milliwatts) {
  *milliwatts = device == kFirst ? 250'000 : 400'000;
  return kSuccess;
}
FAKE int nvmlDeviceGetPowerManagementDefaultLimit(Device, Uint* milliwatts) {
  *milliwatts = 400'000;
  return kSuccess;
}
FAKE int nvmlDeviceGetPowerManagementLimitConstraints(Device, Uint* least, Uint* most) {
  *least = 100'000;
  *most = 400'000;
  return kSuccess;
}
FAKE int nvmlDeviceGetClockInfo(Device, Uint type, Uint* mhz) {
  *mhz = type == 1 ? 1095 : 1215;
  return type == 1 || type == 2 ? kSuccess : kInvalidArgument;
}
FAKE int nvmlDeviceGetMaxClockInfo(Device, Uint type, Uint* mhz) {
  *mhz = type == 1 ? 1410 : 1215;
  return type == 1 || type == 2 ? kSuccess : kInvalidArgument;
}
FAKE int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, Ulonglong* reasons) {
  *reasons = device == kFirst ? 0x4 | 0x40 : 0x1;  // power cap and heat; idle
  return kSuccess;
}
FAKE int nvmlDeviceGetMigMode(Device device, Uint* current, Uint* pending) {
  *current = *pending = device == kSecond ? 1 : 0;
  return kSuccess;
}
FAKE int nvmlDeviceGetMaxMigDeviceCount(Device, Uint* count) {
  *count = 7;
  return kSuccess;
}
FAKE int nvmlDeviceGetMigDeviceHandleByIndex(Device, Uint index, Device* part) {
  if (index != 4) return kNotFound;  // the instances need not come first
  *part = kPart;
  return kSuccess;
}
FAKE int nvmlDeviceGetAttributes_v2(Device device, Attributes* attributes) {
  if (device != kPart) return kNotSupported;
  *attributes = {42, 3, 2, 0, 0, 0, 3, 3, 19968};
  return kSuccess;
}
FAKE int nvmlDeviceGetNvLinkState(Device, Uint link, int* active) {
  if (link >= 12) return kInvalidArgument;
  *active = link < 10;
  return kSuccess;
}
FAKE int nvmlDeviceGetNvLinkRemoteDeviceType(Device, Uint, int* type) {
  *type = 2;
  return kSuccess;
}
FAKE int nvmlDeviceGetCurrPcieLinkWidth(Device device, Uint* width) {
  *width = device == kFirst ? 8 : 16;
  return kSuccess;
}
FAKE int nvmlDeviceGetMaxPcieLinkWidth(Device, Uint* width) {
  *width = 16;
  return kSuccess;
}
FAKE int nvmlDeviceGetCurrPcieLinkGeneration(Device, Uint* generation) {
  *generation = 3;
  return kSuccess;
}
FAKE int nvmlDeviceGetMaxPcieLinkGeneration(Device, Uint* generation) {
  *generation = 4;
  return kSuccess;
}
FAKE int nvmlDeviceGetP2PStatus(Device, Device, int, int* status) {
  *status = 4;  // disabled by a registry key
  return kSuccess;
}
