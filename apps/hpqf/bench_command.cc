#include <CLI/CLI.hpp>
#include <memory>

#include "apps/hpqf/bench_conv.h"
#include "apps/hpqf/bench_gemm.h"
#include "apps/hpqf/bench_model.h"
#include "apps/hpqf/commands.h"
#include "hpqf/base/error.h"

namespace hpqf::app {
namespace {

// One of the benchmarks of kernels: its words, and what it measures when nothing else is asked for.
struct KernelCommand {
  const char *name, *summary, *shapes, *model, *forms, *path, *footer;
  BenchKernelConfig defaults;
  int (*run)(const BenchKernelConfig&);
};

void add_kernel(CLI::App& bench, Action& action, const KernelCommand& k) {
  constexpr const char* kGroup = "What to measure";
  CLI::App* command = bench.add_subcommand(k.name, k.summary);
  const auto config = std::make_shared<BenchKernelConfig>(k.defaults);
  command->add_option("--formats", config->formats, "int8, int12, also with blocks as int8[1x128]; default int8,int12")
      ->delimiter(',')
      ->group(kGroup);
  CLI::Option* shapes = command->add_option("--shapes", config->shapes, k.shapes)->delimiter(',')->group(kGroup);
  command->add_option("--model", config->model, k.model)->group(kGroup);
  command->add_option("--batch-size", config->batch_size, "Of that model; default: what hpqf train takes")
      ->group(kGroup);
  command->add_option("--forms", config->forms, k.forms)->delimiter(',')->group(kGroup);
  command->add_option("--path", config->path, k.path)->group(kGroup);
  add_bench_options(*command, config->common);
  command->footer(k.footer);
  command->callback([&action, shapes, config, run = k.run] {
    action = [shapes, config, run] {
      if (shapes->count() > 0 && !config->model.empty())
        throw Error("--shapes together with --model", "one of the two", "leave out one of them");
      return run(*config);
    };
  });
}

KernelCommand gemm_command() {
  return {"gemm",
          "The three products of linear layers: the integer GEMM from fp32 operands against torch",
          "MxKxN: rows x inputs x outputs of linear layers; default some of transformers",
          "The linear layers of resnet20, vit-tiny, bert-mini, gpt-mini or lstm-lm, instead of --shapes",
          "nt (forward), nn (input gradient), tn (weight gradient); default all three",
          "Force one way to run the integer GEMM: avx512-vnni, avx2 or reference; default: the best here",
          "Times are end to end from fp32: both operands are quantised and packed in every call, or the weight once\n"
          "(packed once), as in all products between two optimizer steps. The error is the relative Frobenius error\n"
          "against the product in fp64.\n"
          "Examples:\n"
          "  hpqf bench gemm\n"
          "  hpqf bench gemm --shapes 2048x512x512,4096x768x3072 --forms nt --json gemm.json\n"
          "  hpqf bench gemm --model gpt-mini --formats int8,int8[1x128] --threads 2 --rounds 30",
          {.forms = {"nt", "nn", "tn"}, .shapes = {"2048x512x512", "2048x512x2048", "2048x2048x512", "2048x768x768"}},
          bench_gemm};
}

KernelCommand conv_command() {
  return {
      "conv",
      "The three products of 2-d convolutions: the integer kernels from fp32 images against torch",
      "IMAGESxCHANNELSxSIZExOUTPUTS:kKERNELsSTRIDEgGROUPS, as 16x64x56x128:k3s2; default some of ResNets",
      "The convolutions of a reference model (resnet20), instead of --shapes",
      "forward, dgrad (input gradient), wgrad (weight gradient); default all three",
      "Force one way to run the integer kernels: avx512-vnni, avx2 or reference; default: the best here",
      "Times are end to end from fp32: images and weights are quantised in every call. Both memory layouts are timed;\n"
      "ratios are to torch's fp32 in its faster layout. The error is the relative Frobenius error against fp64.\n"
      "Examples:\n"
      "  hpqf bench conv\n"
      "  hpqf bench conv --shapes 16x64x56x64:k3,16x128x28x256:k3s2 --forms forward --json conv.json\n"
      "  hpqf bench conv --model resnet20 --formats int8 --threads 2 --rounds 30",
      {.forms = {"forward", "dgrad", "wgrad"},
       .shapes = {"16x64x56x64:k3", "16x128x28x128:k3", "16x256x14x256:k3", "16x512x7x512:k3", "128x64x8x64:k3",
                  "16x128x28x256:k3s2", "16x256x14x256:k1"}},
      bench_conv};
}

void add_model(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand("model", "Whole training steps: torch fp32 and autocast against precisions");
  const auto config = std::make_shared<BenchModelConfig>();
  command->add_option("--model", config->model, "resnet20, vit-tiny, bert-mini, gpt-mini or lstm-lm")
      ->required()
      ->group("What to measure");
  command
      ->add_option("--formats", config->formats,
                   "fp32, bf16, fp16, fp8, int8, int12, ..., or auto; default int8,int12,bf16,auto")
      ->delimiter(',')
      ->group("What to measure");
  command->add_option("--batch-size", config->batch_size, "Default: what hpqf train takes")->group("What to measure");
  add_bench_options(*command, config->common);
  command->footer(
      "Every precision trains its own copy of the model, from the same weights, on the same random batch. torch's\n"
      "autocast to bf16 takes part unless its first step takes more than 5 times as long as fp32.\n"
      "Examples:\n"
      "  hpqf bench model --model gpt-mini\n"
      "  hpqf bench model --model lstm-lm --formats int8,auto --batch-size 16 --rounds 9 --json step.json");
  command->callback([&action, config] { action = [config] { return bench_model(*config); }; });
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App* bench = app.add_subcommand("bench", "Speed and error of low precision on this machine, against torch");
  bench->require_subcommand(1);
  bench->footer(
      "Examples:\n"
      "  hpqf bench gemm --shapes 2048x512x512 --formats int8,int12\n"
      "  hpqf bench conv --shapes 16x64x56x64:k3\n"
      "  hpqf bench model --model gpt-mini --formats int8,auto");
  add_kernel(*bench, action, gemm_command());
  add_kernel(*bench, action, conv_command());
  add_model(*bench, action);
}

}  // namespace hpqf::app
