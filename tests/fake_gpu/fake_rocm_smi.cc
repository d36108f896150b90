// A library with the functions of ROCm SMI that are called, for the test of the code that loads it: one GPU,
// partitioned.
#include <cstdint>
#include <cstdio>
#include <cstring>

#define FAKE extern "C" __attribute__((visibility("default")))

FAKE int rsmi_init(uint64_t) { return 0; }
FAKE int rsmi_shut_down() { return 0; }
FAKE int rsmi_version_str_get(int, char* out, uint32_t length) {
  std::snprintf(out, length, "6.7.0");
  return 0;
}
FAKE int rsmi_num_monitor_devices(uint32_t* count) {
  *count = 1;
  return 0;
}
FAKE int rsmi_dev_name_get(uint32_t, char* out, size_t length) {
  std::snprintf(out, length, "AMD Instinct MI300X OAM");
  return 0;
}
FAKE int rsmi_dev_unique_id_get(uint32_t, uint64_t* id) {
  *id = 0x9246fe09eb0f4f8e;
  return 0;
}
FAKE int rsmi_dev_pci_id_get(uint32_t, uint64_t* id) {
  *id = uint64_t{1} << 32 | 0x0c << 8 | 2 << 3 | 1;
  return 0;
}
FAKE int rsmi_dev_id_get(uint32_t, uint16_t* id) {
  *id = 0x74a1;
  return 0;
}
FAKE int rsmi_dev_memory_total_get(uint32_t, int type, uint64_t* bytes) {
  *bytes = uint64_t{192} << 30;
  return type == 0 ? 0 : 1;
}
FAKE int rsmi_dev_power_cap_get(uint32_t, uint32_t, uint64_t* microwatts) {
  *microwatts = 750'000'000;
  return 0;
}
FAKE int rsmi_dev_power_cap_default_get(uint32_t, uint64_t*) { return 2; }  // not supported
FAKE int rsmi_dev_compute_partition_get(uint32_t, char* out, uint32_t length) {
  std::snprintf(out, length, "CPX");
  return 0;
}
FAKE int rsmi_dev_memory_partition_get(uint32_t, char* out, uint32_t length) {
  std::snprintf(out, length, "NPS4");
  return 0;
}
