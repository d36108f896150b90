// HPQF_API marks what the shared libraries show to users; everything else stays hidden.
#pragma once
#define HPQF_API __attribute__((visibility("default")))
