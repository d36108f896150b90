#include "hpqf/observe/export/http.h"

#include <fmt/format.h>

namespace hpqf::observe {
namespace {

std::string answer(std::string_view status, std::string_view type, std::string_view body,
                   std::string_view headers = "") {
  return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n{}", status,
                     type, body.size(), headers, body);
}

constexpr std::string_view kPlain = "text/plain; charset=utf-8";

}  // namespace

std::optional<std::string> http_answer(std::string_view request, const std::function<std::string()>& body) {
  const bool whole =
      request.find("\r\n\r\n") != std::string_view::npos || request.find("\n\n") != std::string_view::npos;
  if (request.size() > kLongestRequest)
    return answer("431 Request Header Fields Too Large", kPlain, "the request is too long\n");
  if (!whole) return std::nullopt;
  const std::string_view line = request.substr(0, request.find_first_of("\r\n"));
  const size_t first = line.find(' '), second = line.rfind(' ');
  if (first == std::string_view::npos || second == first || !line.substr(second + 1).starts_with("HTTP/1."))
    return answer("400 Bad Request", kPlain, "this is no request of HTTP/1\n");
  const std::string_view target = line.substr(first + 1, second - first - 1);
  if (target.substr(0, target.find('?')) != "/metrics")
    return answer("404 Not Found", kPlain, "there is only /metrics here\n");
  if (line.substr(0, first) != "GET")
    return answer("405 Method Not Allowed", kPlain, "only GET is answered\n", "Allow: GET\r\n");
  return answer("200 OK", "text/plain; version=0.0.4; charset=utf-8", body());
}

}  // namespace hpqf::observe
