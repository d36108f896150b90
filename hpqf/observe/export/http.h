// HTTP as far as a scrape needs it, apart from sockets.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "hpqf/base/export.h"

namespace hpqf::observe {

inline constexpr size_t kLongestRequest = 8192;

// The whole answer to `request`, connection: close; empty while the head of the request is not all there. 200 for GET
// /metrics (a query is passed over), 404, 405 with Allow, 400, 431 when it is longer than kLongestRequest.
HPQF_API std::optional<std::string> http_answer(std::string_view request, const std::function<std::string()>& body);

}  // namespace hpqf::observe
