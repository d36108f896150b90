# Stand-ins for the libraries of GPU vendors and recorded machines, for the tests of hpqf/device/machine and of `hpqf doctor`.
foreach(name fake_nvml fake_rocm_smi)
  add_library(hpqf_${name} MODULE tests/fake_gpu/${name}.cc)
  set_target_properties(hpqf_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name})
endforeach()
add_dependencies(hpqf_device_test hpqf_fake_nvml hpqf_fake_rocm_smi)
target_compile_definitions(hpqf_device_test PRIVATE HPQF_MACHINES="${PROJECT_SOURCE_DIR}/tests/machines"
                           HPQF_FAKE_NVML="$<TARGET_FILE:hpqf_fake_nvml>" HPQF_FAKE_ROCM_SMI="$<TARGET_FILE:hpqf_fake_rocm_smi>")
