#include "hpqf/observe/run/step_record.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace hpqf::observe {
namespace {

using Json = nlohmann::ordered_json;

// Reads the members of one flat object as they come: no tree is built, which makes a file of a million lines cheap.
// Derived readers get scalars of the object itself and strings of the arrays in it; deeper levels are passed over.
class FlatReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool value) override { return depth_ == 1 ? flag(value), true : true; }
  bool number_integer(number_integer_t value) override { return integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return integer(static_cast<int64_t>(value));
    return number_float(static_cast<double>(value), {});
  }
  bool number_float(number_float_t value, const string_t&) override {
    if (depth_ == 1) number(value);
    return true;
  }
  bool string(string_t& value) override {
    if (depth_ == 1) text(value);
    if (depth_ == 2 && in_array_) element(value);
    return true;
  }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_, depth_ == 1 || (in_array_ = false, true); }
  bool end_object() override { return --depth_, true; }
  bool start_array(std::size_t) override {
    if (depth_ == 0) return false;  // an array is no record
    return ++depth_, in_array_ = depth_ == 2, true;
  }
  bool end_array() override { return --depth_, true; }
  bool key(string_t& name) override {
    if (depth_ == 1) key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 protected:
  virtual void number(double value) = 0;
  virtual void whole(int64_t value) { number(static_cast<double>(value)); }
  virtual void flag(bool) {}
  virtual void text(std::string&) {}
  virtual void element(std::string&) {}
  std::string key_;

 private:
  bool integer(int64_t value) {
    if (depth_ == 1) whole(value);
    return true;
  }
  int depth_ = 0;
  bool in_array_ = false;
};

double from_text(const std::string& text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nan("");
}

struct StepReader : FlatReader {
  StepRecord record;
  bool has_step = false, has_loss = false;

  void number(double value) override {
    if (key_ == "loss")
      record.loss = value, has_loss = true;
    else if (key_ == "loss_scale")
      record.loss_scale = value;
    else if (key_ == "lr")
      record.lr = value;
    else if (key_ == "grad_norm")
      record.grad_norm = value;
    else if (key_ == "samples_per_second")
      record.samples_per_second = value;
    else if (key_ == "seconds")
      record.seconds = value;
    else if (key_ == "time")
      record.unix_seconds = value;
  }
  void whole(int64_t value) override {
    if (key_ == "step")
      record.step = value, has_step = true;
    else if (key_ == "epoch")
      record.epoch = value;
    else if (key_ == "plan_epoch")
      record.plan_epoch = value;
    else
      number(static_cast<double>(value));
  }
  void flag(bool value) override {
    if (key_ == "skipped") record.skipped = value;
  }
  void text(std::string& value) override {
    if (key_ == "cause")
      record.cause = std::move(value);
    else if (key_ == "loss_text")
      record.loss = from_text(value), has_loss = true;
    else if (key_ == "grad_norm_text")
      record.grad_norm = from_text(value);
  }
  void element(std::string& value) override {
    if (key_ == "changes") record.changes.push_back(std::move(value));
  }
};

struct EvaluationReader : FlatReader {
  EvaluationRecord record;
  bool has_step = false, has_loss = false;

  void number(double value) override {
    if (key_ == "loss")
      record.loss = value, has_loss = true;
    else if (key_ == "accuracy")
      record.accuracy = value;
    else if (key_ == "time")
      record.unix_seconds = value;
  }
  void whole(int64_t value) override {
    if (key_ == "step")
      record.step = value, has_step = true;
    else if (key_ == "epoch")
      record.epoch = value;
    else if (key_ == "samples")
      record.samples = value;
    else
      number(static_cast<double>(value));
  }
  void text(std::string& value) override {
    if (key_ == "loss_text") record.loss = from_text(value), has_loss = true;
  }
};

template <class Reader>
auto parse(std::string_view line) -> std::optional<decltype(Reader::record)> {
  Reader reader;
  if (!nlohmann::json::sax_parse(line, static_cast<nlohmann::json_sax<nlohmann::json>*>(&reader)) || !reader.has_step)
    return std::nullopt;
  if (!reader.has_loss) reader.record.loss = std::nan("");
  return std::move(reader.record);
}

}  // namespace

std::optional<StepRecord> parse_step(std::string_view line) { return parse<StepReader>(line); }
std::optional<EvaluationRecord> parse_evaluation(std::string_view line) { return parse<EvaluationReader>(line); }

std::string evaluation_line(const EvaluationRecord& e) {
  Json line{{"step", e.step}, {"epoch", e.epoch}};
  line["loss"] = e.loss;
  if (!std::isfinite(e.loss)) {
    line["loss"] = nullptr;
    line["loss_text"] = std::isnan(e.loss) ? "nan" : e.loss > 0 ? "inf" : "-inf";
  }
  if (e.accuracy) line["accuracy"] = *e.accuracy;
  line["samples"] = e.samples;
  if (e.unix_seconds) line["time"] = *e.unix_seconds;
  return line.dump();
}

}  // namespace hpqf::observe
