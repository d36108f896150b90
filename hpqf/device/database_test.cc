#include "hpqf/device/database.h"

#include <gtest/gtest.h>

#include "hpqf/device/fixture_test.h"

namespace hpqf::device {
namespace {

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

// What the reader says about one fact.
std::string mistake(const std::string& key, const std::string& entry) {
  const Schema schema = Schema::parse(kFields, "fields.json");
  std::vector<Error> mistakes;
  parse_device(device_text("a", "\"" + key + "\": " + entry), "a.json", "a", schema, mistakes);
  return mistakes.empty() ? "no error" : mistakes.front().what();
}

TEST(DeviceFile, EveryTypeIsReadAndShown) {
  const Schema schema = Schema::parse(kFields, "fields.json");
  std::vector<Error> mistakes;
  const DeviceFacts device =
      parse_device(device_text("a", fact_text("identity.name", "\"A \\\"1\\\"\"") + "," +
                                        fact_text("identity.match", "[\"a1\", \"a 1\"]") + "," +
                                        fact_text("units.count", "132") + "," + fact_text("peak.bf16.dense", "989.4") +
                                        "," + fact_text("support.bf16.matmul", "true") + "," +
                                        fact_text("partition.profile_slices", "{\"1g\": 1, \"2g\": 2}") + "," +
                                        fact_text("power.throttle_c", "-5.5")),
                   "a.json", "a", schema, mistakes);
  EXPECT_TRUE(mistakes.empty());
  EXPECT_EQ(device.name(), "A \"1\"");
  EXPECT_EQ(device.texts("identity.match"), (std::vector<std::string>{"a1", "a 1"}));
  EXPECT_EQ(device.number("units.count"), 132);
  EXPECT_EQ(device.number("peak.bf16.dense"), 989.4);
  EXPECT_EQ(device.flag("support.bf16.matmul"), true);
  EXPECT_EQ(device.number("power.throttle_c"), -5.5);
  const Value& slices = device.find("partition.profile_slices")->value;
  EXPECT_EQ(slices.at("2g")->number, 2);
  EXPECT_EQ(slices.at("3g"), nullptr);
  EXPECT_EQ(slices.shown(), "{1g: 1, 2g: 2}");
  EXPECT_EQ(slices.json(), "{\"1g\": 1, \"2g\": 2}");
  EXPECT_EQ(device.find("identity.name")->value.json(), "\"A \\\"1\\\"\"");
  EXPECT_EQ(device.find("peak.bf16.dense")->value.shown(), "989.4");
  EXPECT_EQ(device.find("peak.bf16.dense")->source->title, "A sheet");
  EXPECT_EQ(device.find("identity.vendor"), nullptr);
  EXPECT_EQ(device.number("identity.name"), std::nullopt) << "a text is no number";
}

TEST(DeviceFile, NumbersAreShownAsTheyWereWritten) {
  Value value;
  for (const auto& [number, text] : {std::pair{0.0, "0"},
                                     {80.0, "80"},
                                     {1792000.0, "1792000"},
                                     {0.1, "0.1"},
                                     {989.4, "989.4"},
                                     {-5.5, "-5.5"},
                                     {1e300, "1e+300"}}) {
    value.number = number;
    EXPECT_EQ(value.shown(), text);
    EXPECT_EQ(value.json(), text);
  }
}

TEST(DeviceFile, RefusesWithFileKeyAndRemedy) {
  EXPECT_EQ(mistake("units.count", R"({"value": 132, "source": "sheet"})"), "no error");
  const std::string unknown = mistake("peak.bf16.dens", R"({"value": 1, "source": "sheet"})");
  EXPECT_CONTAINS(unknown, "a.json, key \"peak.bf16.dens\"");
  EXPECT_CONTAINS(unknown, "for example peak.bf16.dense");
  EXPECT_CONTAINS(mistake("peak.bf16.dense", R"({"value": "fast", "source": "sheet"})"), "type number in TFLOP/s");
  EXPECT_CONTAINS(mistake("units.count", R"({"value": 1.5, "source": "sheet"})"), "a fraction (1.5)");
  EXPECT_CONTAINS(mistake("units.count", R"({"value": -1, "source": "sheet"})"), "below zero");
  EXPECT_CONTAINS(mistake("identity.name", R"({"value": "", "source": "sheet"})"), "an empty text");
  EXPECT_CONTAINS(mistake("identity.match", R"({"value": [], "source": "sheet"})"), "empty");
  EXPECT_CONTAINS(mistake("support.bf16.matmul", R"({"value": 1, "source": "sheet"})"), "a number (1)");
  EXPECT_CONTAINS(mistake("units.count", R"({"value": null, "source": "sheet"})"), "null");
  EXPECT_CONTAINS(mistake("units.count", R"({"source": "sheet"})"), "no value");
  EXPECT_CONTAINS(mistake("units.count", R"({"value": 1})"), "no source");
  EXPECT_CONTAINS(mistake("units.count", R"({"value": 1, "source": "shet"})"), "source \"shet\"");
  EXPECT_CONTAINS(mistake("units.count", R"({"value": 1, "source": "sheet", "trust": "high"})"),
                  "unknown key \"trust\"");
  EXPECT_CONTAINS(mistake("units.count", "132"), "number (132)");
  const std::string deep = std::string(20, '[') + "1" + std::string(20, ']');
  EXPECT_CONTAINS(mistake("identity.match", "{\"value\": " + deep + ", \"source\": \"sheet\"}"), "nest too deeply");
}

TEST(DeviceFile, SourcesAreChecked) {
  const Schema schema = Schema::parse(kFields, "fields.json");
  auto said = [&](const std::string& source) {
    std::vector<Error> mistakes;
    parse_device(R"({"schema_version": 1, "id": "a", "sources": {"s": )" + source + R"(}, "facts": {}})", "a.json", "a",
                 schema, mistakes);
    return mistakes.empty() ? std::string("no error") : std::string(mistakes.front().what());
  };
  EXPECT_EQ(said(R"({"title": "T", "url": "u", "date": "2024-02-29", "trust": "measured"})"), "no error");
  EXPECT_CONTAINS(said(R"({"title": "T", "url": "u", "date": "2024-13", "trust": "sheet"})"), "date \"2024-13\"");
  EXPECT_CONTAINS(said(R"({"title": "T", "url": "u", "date": "24/3/1", "trust": "sheet"})"), "YYYY-MM");
  EXPECT_CONTAINS(said(R"({"title": "T", "url": "u", "date": "2024", "trust": "high"})"), "sheet, measured, several");
  EXPECT_CONTAINS(said(R"({"title": "", "url": "u", "date": "2024", "trust": "sheet"})"), "empty title");
  EXPECT_CONTAINS(said(R"({"title": "T", "date": "2024", "trust": "sheet"})"), "no key \"url\"");
}

TEST(SchemaFile, RefusesWhatItCannotMean) {
  auto said = [](const std::string& text) { return error_of([&] { Schema::parse(text, "fields.json"); }); };
  const std::string group = R"({"name": "g", "title": "G", "unknown": "u"})";
  auto with = [&](const std::string& fields) {
    return R"({"schema_version": 1, "groups": [)" + group + R"(], "fields": [)" + fields + "]}";
  };
  const std::string field = R"({"key": "a", "group": "g", "type": "number", "unit": "", "meaning": "m"})";
  EXPECT_EQ(said(with(field)), "no error");
  EXPECT_CONTAINS(said(with(field + "," + field)), "field \"a\" twice");
  EXPECT_CONTAINS(said(with(R"({"key": "a", "group": "h", "type": "number", "unit": "", "meaning": "m"})")), "\"h\"");
  EXPECT_CONTAINS(said(with(R"({"key": "a", "group": "g", "type": "float", "unit": "", "meaning": "m"})")),
                  "\"float\"");
  EXPECT_CONTAINS(said(R"({"schema_version": 2, "groups": [], "fields": []})"), "schema_version 2");
}

TEST(Database, WholeFileMistakesNameTheFile) {
  DatabaseFolder folder;
  const std::string good = device_text("a", fact_text("units.count", "4"));
  folder.put("v/a.json", good);
  folder.put("v/cut.json", good.substr(0, good.size() / 2));
  folder.put("v/empty.json", "");
  folder.put("v/garbage.json",
             "\x7f"
             "ELF\0\1");
  folder.put("v/other.json", device_text("another", ""));
  folder.put("w/a.json", good);
  folder.put("w/huge.json", device_text("huge", fact_text("peak.bf16.dense", "1e400")));
  folder.put("w/newer.json", R"({"schema_version": 2, "id": "newer", "sources": {}, "facts": {}})");

  const LoadedDatabase loaded = Database::load_usable(folder.path());
  ASSERT_EQ(loaded.mistakes.size(), 7u);
  EXPECT_CONTAINS(loaded.mistakes[0].asked(), "cut.json: JSON that ends too early");
  EXPECT_CONTAINS(loaded.mistakes[1].asked(), "empty.json");
  EXPECT_CONTAINS(loaded.mistakes[2].asked(), "garbage.json: text that is not JSON");
  EXPECT_CONTAINS(loaded.mistakes[3].asked(), "other.json: id \"another\"");
  EXPECT_CONTAINS(loaded.mistakes[4].asked(), "w/a.json: device \"a\" a second time");
  EXPECT_CONTAINS(loaded.mistakes[5].asked(), "huge.json: a number that no double holds");
  EXPECT_CONTAINS(loaded.mistakes[6].asked(), "newer.json: schema_version 2");
  ASSERT_EQ(loaded.database.devices().size(), 1u) << "the good file stays usable";
  EXPECT_EQ(loaded.database.devices()[0].number("units.count"), 4);

  const std::string all = error_of([&] { Database::load(folder.path()); });
  EXPECT_CONTAINS(all, "7 mistakes");
  for (const char* name : {"cut.json", "empty.json", "garbage.json", "other.json", "huge.json", "newer.json"})
    EXPECT_CONTAINS(all, name);
}

// A file that is cut anywhere is refused or, cut only of its last blanks, whole.
TEST(Database, EveryTruncationIsRefused) {
  const Schema schema = Schema::parse(kFields, "fields.json");
  const std::string whole = device_text("a", fact_text("units.count", "4") + "," + fact_text("peak.bf16.dense", "1.5"));
  for (size_t length = 0; length < whole.size(); ++length) {
    std::vector<Error> mistakes;
    EXPECT_THROW(parse_device(whole.substr(0, length), "a.json", "a", schema, mistakes), Error) << length;
  }
}

TEST(Database, AMistakenFactLeavesTheOthers) {
  DatabaseFolder folder;
  folder.put("a.json",
             device_text("a", fact_text("units.count", "\"many\"") + "," + fact_text("peak.bf16.dense", "7")));
  const LoadedDatabase loaded = Database::load_usable(folder.path());
  ASSERT_EQ(loaded.mistakes.size(), 1u);
  EXPECT_EQ(loaded.database.device("a").number("peak.bf16.dense"), 7);
  EXPECT_EQ(loaded.database.device("a").find("units.count"), nullptr);
  EXPECT_CONTAINS(error_of([&] { Database::load(folder.path()); }), "key \"units.count\"");
}

TEST(Database, NoFolderNoSchema) {
  EXPECT_CONTAINS(error_of([] { Database::load("/nowhere"); }), "/nowhere");
  DatabaseFolder folder;
  folder.put("fields.json", "{");
  EXPECT_CONTAINS(error_of([&] { Database::load_usable(folder.path()); }), "fields.json");
}

TEST(Database, OverridesWinAndAreMarked) {
  DatabaseFolder folder;
  folder.put("v/a.json", device_text("a", fact_text("units.count", "4") + "," + fact_text("peak.bf16.dense", "7")));
  DatabaseFolder mine("mine");
  const std::string user = mine.put("a.json", device_text("a", fact_text("peak.bf16.dense", "9")));
  const std::string added = mine.put("deep/b.json", device_text("b", fact_text("units.count", "1")));
  const Database database = Database::load(folder.path(), {user, added});
  const DeviceFacts& a = database.device("a");
  EXPECT_EQ(a.number("peak.bf16.dense"), 9);
  EXPECT_TRUE(a.find("peak.bf16.dense")->user);
  EXPECT_EQ(a.number("units.count"), 4);
  EXPECT_FALSE(a.find("units.count")->user);
  EXPECT_TRUE(database.device("b").find("units.count")->user);
  EXPECT_EQ(Database::load(folder.path(), {mine.path()}).devices().size(), 2u) << "a folder of them";
  EXPECT_CONTAINS(error_of([&] { Database::load(folder.path(), {"/nowhere/c.json"}); }), "/nowhere/c.json");
}

TEST(Database, UnknownHasAReasonAndNoValue) {
  DatabaseFolder folder;
  folder.put("a.json", device_text("a", fact_text("units.count", "4")));
  const Database database = Database::load(folder.path());
  EXPECT_EQ(database.device("a").number("peak.bf16.dense"), std::nullopt);
  EXPECT_EQ(database.why_unknown("peak.bf16.dense"), "no figure is published");
  EXPECT_CONTAINS(error_of([&] { database.why_unknown("peak.bf17.dense"); }), "peak.bf16.dense");
}

Database named() {
  auto device = [](const std::string& id, const std::string& name, std::vector<std::string> match,
                   std::vector<std::string> never, double memory) {
    Facts facts(id);
    facts.text("identity.name", name).texts("identity.match", match);
    if (!never.empty()) facts.texts("identity.match_not", never);
    if (memory > 0) facts.number("identity.match_memory_gb", memory);
    return static_cast<DeviceFacts>(facts);
  };
  return Database(
      Schema::parse(kFields, "fields.json"),
      {static_cast<DeviceFacts>(Facts("mi300x").texts("identity.aliases", {"mi300x-oam", "MI300"})),
       device("h100-sxm", "NVIDIA H100 SXM", {"h100 80gb hbm3", "h100"}, {"pcie", "gh200"}, 0),
       device("h100-pcie", "NVIDIA H100 PCIe", {"h100 pcie"}, {}, 0),
       device("l40", "NVIDIA L40", {"nvidia l40"}, {"l40s"}, 0), device("l40s", "NVIDIA L40S", {"nvidia l40s"}, {}, 0),
       device("a100-40", "NVIDIA A100 40GB", {"a100-sxm4"}, {}, 40),
       device("a100-80", "NVIDIA A100 80GB", {"a100-sxm4"}, {}, 80)});
}

TEST(Database, FindsByIdMarketNameAndDriverName) {
  const Database database = named();
  EXPECT_EQ(database.device("l40s").id(), "l40s");
  EXPECT_EQ(database.device("L40S").id(), "l40s");
  EXPECT_EQ(database.device("nvidia l40").id(), "l40");
  EXPECT_EQ(database.device("mi300").id(), "mi300x");
  EXPECT_EQ(database.device("NVIDIA H100 80GB HBM3").id(), "h100-sxm");
  EXPECT_EQ(database.device("NVIDIA H100 PCIe").id(), "h100-pcie");
  EXPECT_EQ(database.detected("NVIDIA L40S-48Q")->id(), "l40s");
  EXPECT_EQ(database.detected("NVIDIA GH200 480GB"), nullptr);
  EXPECT_EQ(database.detected("Quadro RTX 4000"), nullptr);
}

TEST(Database, MemoryDecidesBetweenEqualNames) {
  const Database database = named();
  EXPECT_EQ(database.detected("NVIDIA A100-SXM4"), nullptr) << "which of the two is not known";
  EXPECT_EQ(database.detected("NVIDIA A100-SXM4", 39.5)->id(), "a100-40");
  EXPECT_EQ(database.detected("NVIDIA A100-SXM4", 79.2)->id(), "a100-80");
  EXPECT_EQ(database.detected("NVIDIA A100-SXM4", 60), nullptr);
  EXPECT_CONTAINS(error_of([&] { database.device("NVIDIA A100-SXM4"); }), "a100-40, a100-80");
}

TEST(Database, ErrorsNameTheNearest) {
  const Database database = named();
  EXPECT_CONTAINS(error_of([&] { database.device("h10-sxm"); }), "nearest: h100-sxm");
  EXPECT_CONTAINS(error_of([&] { database.device("a100"); }), "a100-40, a100-80") << "part of a name first";
}

}  // namespace
}  // namespace hpqf::device
