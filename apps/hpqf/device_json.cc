#include "apps/hpqf/device_json.h"

#include "hpqf/formats/format.h"

namespace hpqf::app {

DeviceJson to_json(const device::Value& value) { return DeviceJson::parse(value.json()); }

DeviceJson to_json(const device::Fact& fact, const device::Field* field) {
  DeviceJson json;
  json["value"] = to_json(fact.value);
  if (field) {
    json["unit"] = field->unit;
    json["group"] = field->group;
  }
  json["source"] = {{"title", fact.source->title}, {"url", fact.source->url}, {"date", fact.source->date}};
  json["trust"] = name(fact.source->trust);
  json["user"] = fact.user;
  if (!fact.note.empty()) json["note"] = fact.note;
  return json;
}

DeviceJson to_json(const device::Resolution& resolution) {
  DeviceJson json;
  json["format"] = formats::name(resolution.format);
  json["kind"] = name(resolution.kind);
  json["reason"] = resolution.reason;
  if (resolution.rate) {
    json["rate_tera_ops"] = resolution.rate->tera;
    json["rate_source"] = name(resolution.rate->source);
    json["rate_basis"] = resolution.rate->basis;
  } else {
    json["rate_tera_ops"] = nullptr;
    json["rate_source"] = name(device::RateSource::none);
  }
  if (resolution.gain) {
    json["gain"] = *resolution.gain;
    json["gain_over"] = formats::name(resolution.baseline);
  }
  return json;
}

}  // namespace hpqf::app
