#include <cmath>

#include "hpqf/observe/run/fixtures_test.h"
#include "hpqf/observe/run/run_record.h"

namespace hpqf::observe {
namespace {

constexpr const char* kTwoSteps =
    "{\"step\":1,\"epoch\":0,\"loss\":2,\"loss_scale\":4,\"skipped\":true,\"cause\":\"a\",\"changes\":[\"x\"]}\n"
    "{\"step\":2,\"epoch\":0,\"loss\":1,\"loss_scale\":2,\"skipped\":false,\"seconds\":0.5}\n";

bool noted(const RunRecord& run, const std::string& part) {
  for (const std::string& note : run.notes)
    if (note.find(part) != std::string::npos) return true;
  return false;
}

TEST(ReadRun, AllFiles) {
  const Folder folder;
  folder.write("metrics.jsonl", kTwoSteps);
  folder.write("config.json", R"({"schema":"hpqf.run","version":1,"model":"m","sensitive":["a","b"],"lr":0.1})");
  folder.write("audit.json", made_audit().to_json());
  folder.write("plan.json", plan::PrecisionPlan::uniform("bf16").to_json());
  folder.write("result.json", R"({"task":"images","loss":0.4,"accuracy":0.9,"samples":10,"seconds":3.5})");
  folder.write("evaluations.jsonl", "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":2}\n{\"step\":2,\"loss\":1}\n");
  folder.write("history.jsonl",
               R"({"step":1,"epoch":2,"changes":[{"layer":"a","role":"input","from":"int8","to":"bf16","reason":"r"}]})"
               "\n");
  folder.write("alerts.jsonl", R"({"step":2,"severity":"error","kind":"loss","layer":"a","message":"high"})"
                               "\n");
  folder.write("monitor.jsonl", R"({"step":1,"layer":"a","role":"input","sqnr_db":33,"deep":{"x":1}})"
                                "\n");
  folder.write("cost.json", R"({"schema":"s","total":{"value":1.5,"basis":"modelled"},"list":[1,2]})");
  const RunRecord run = read_run(folder.path());
  EXPECT_TRUE(run.notes.empty()) << run.notes.front();
  EXPECT_EQ(run.steps, 2);
  EXPECT_EQ(run.skipped, 1);
  ASSERT_EQ(run.skipped_steps.size(), 1u);
  EXPECT_EQ(run.skipped_steps[0].cause, "a");
  EXPECT_EQ(run.change_texts, (std::vector<std::pair<int64_t, std::string>>{{1, "x"}}));
  EXPECT_EQ(run.step_seconds, 0.5);
  EXPECT_EQ(run.timed_steps, 1);
  EXPECT_EQ(run.loss.last(), 1);
  EXPECT_TRUE(run.lr.empty());
  EXPECT_EQ(run.setting("sensitive"), "a, b");
  EXPECT_EQ(run.setting("lr"), "0.1");
  EXPECT_EQ(run.setting("schema"), "");
  ASSERT_TRUE(run.plan && run.audit && run.result);
  EXPECT_EQ(run.audit->rows.size(), 3u);
  EXPECT_EQ(run.result->accuracy, 0.9);
  EXPECT_FALSE(run.result->perplexity);
  ASSERT_EQ(run.evaluations.size(), 2u) << "the last one of a step holds";
  EXPECT_EQ(run.evaluations[1].loss, 1);
  ASSERT_EQ(run.history.size(), 1u);
  EXPECT_EQ(run.history[0].changes[0].to, "bf16");
  ASSERT_EQ(run.alerts.size(), 1u);
  EXPECT_EQ(run.alerts[0].text, "high");
  EXPECT_EQ(run.monitored.at("a input: sqnr_db").last(), 33);
  EXPECT_EQ(run.monitored.at("a input: deep: x").last(), 1);
  EXPECT_EQ(run.cost,
            (RunRecord::Facts{{"total.value", "1.5"}, {"total.basis", "modelled"}, {"list.0", "1"}, {"list.1", "2"}}));
}

TEST(ReadRun, AKilledRun) {
  const Folder folder;
  folder.write("metrics.jsonl", std::string(kTwoSteps) + "{\"step\":3,\"lo");
  const RunRecord run = read_run(folder.path());
  EXPECT_EQ(run.last_step, 2);
  EXPECT_TRUE(noted(run, "torn"));
  EXPECT_TRUE(noted(run, "audit.json is missing"));
  EXPECT_FALSE(run.audit || run.plan || run.result);
}

TEST(ReadRun, DamagedFilesAreLeftOutWithAWord) {
  const Folder folder;
  folder.write("metrics.jsonl", "no json\n" + std::string(kTwoSteps) + "[]\n");
  for (const char* name : {"audit.json", "plan.json", "config.json", "result.json"}) {
    folder.write(name, "{\"schema\":");
    EXPECT_TRUE(noted(read_run(folder.path()), std::string(name) + " was left out")) << name;
    folder.write(name, "[1]");
    EXPECT_TRUE(noted(read_run(folder.path()), std::string(name) + " was left out")) << name;
  }
  for (const char* name : {"history.jsonl", "alerts.jsonl", "monitor.jsonl", "gradients.jsonl"}) {
    folder.write(name, "7\n{\"step\":1e300,\"changes\":[3,{\"layer\":5}]}\n{\"st");
    EXPECT_TRUE(noted(read_run(folder.path()), name)) << name;
  }
  EXPECT_EQ(read_run(folder.path()).steps, 2);
  EXPECT_TRUE(noted(read_run(folder.path()), "2 lines that are no record"));
}

TEST(ReadRun, ARunThatWentBack) {
  const Folder folder;
  std::string text;
  for (const int64_t step : {1, 2, 3, 4, 3, 4, 5})
    text += "{\"step\":" + std::to_string(step) + ",\"loss\":1,\"skipped\":" + (step == 4 ? "true" : "false") + "}\n";
  folder.write("metrics.jsonl", text);
  const RunRecord run = read_run(folder.path());
  EXPECT_EQ(run.loss.points(), 5);
  EXPECT_EQ(run.last_step, 5);
  EXPECT_EQ(run.steps, 5);
  EXPECT_EQ(run.skipped, 1);
  EXPECT_TRUE(noted(run, "goes back from step 4 to 3"));
}

TEST(ReadRun, EmptyAndForeignFolders) {
  const Folder folder;
  EXPECT_HAS(error_of([&] { read_run(folder.path()); }), "holds no run");
  EXPECT_HAS(error_of([&] { read_run(folder / "nowhere"); }), "nowhere");
  EXPECT_HAS(error_of([&] { read_run_info(folder.path()); }), "holds no run");
  folder.write("notes.txt", "x");
  EXPECT_HAS(error_of([&] { read_run(folder.path()); }), "hpqf train --out");
  folder.write("metrics.jsonl", "");
  EXPECT_TRUE(noted(read_run(folder.path()), "no step"));
}

TEST(ReadRun, Info) {
  const Folder folder;
  folder.write("metrics.jsonl", "");
  folder.write("config.json", R"({"model":"m","data":"d","plan":"p.json","batch-size":32})");
  const RunInfo info = read_run_info(folder.path() + "/");
  EXPECT_EQ(info.name, std::filesystem::path(folder.path()).filename());
  EXPECT_EQ(info.model, "m");
  EXPECT_EQ(info.precision, "p.json");
  EXPECT_EQ(info.batch_size, 32);
  EXPECT_GT(info.unix_seconds, 1.6e9);
}

}  // namespace
}  // namespace hpqf::observe
