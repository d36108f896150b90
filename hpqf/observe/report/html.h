// Pieces of HTML. Whatever comes from a run (layer names, reasons, settings) goes through escaped().
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hpqf/base/export.h"

namespace hpqf::observe::html {

// For text and for attributes in double quotes: & < > " ' are written as references, bytes that are no UTF-8 and
// control characters become U+FFFD.
HPQF_API std::string escaped(std::string_view text);

// JSON text for a <script type="application/json">: without '<', which could end the element.
HPQF_API std::string script_json(std::string_view json);

HPQF_API std::string layer_name(std::string_view layer);  // escaped; "(model)" for "", breaks allowed after dots

// Where a number comes from: "measured", "modelled", "quoted".
std::string badge(std::string_view basis);

// A section with a heading to link to; `basis` and `source` stand under the heading.
std::string section(std::string_view id, std::string_view title, std::string_view basis, std::string_view source,
                    std::string_view body);

// Cells are HTML already. Columns named in `right` hold numbers. On a phone a table scrolls sideways in its own box; a
// `stacked` one shows each row as a list of titles and cells instead.
std::string table(const std::vector<std::string>& titles, const std::vector<std::vector<std::string>>& rows,
                  const std::vector<size_t>& right, std::string_view caption, bool stacked = false);

// What to do to see something that the run does not have.
std::string hint(std::string_view html);

std::string step_count(int64_t steps);        // "1 step", "12,345 steps"
HPQF_API std::string grouped(int64_t value);  // "12,345"
HPQF_API std::string number(double value);    // four digits, "nan", "inf"

}  // namespace hpqf::observe::html
