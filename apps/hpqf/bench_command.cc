#include <CLI/CLI.hpp>
#include <memory>

#include "apps/hpqf/bench_conv.h"
#include "apps/hpqf/bench_gemm.h"
#include "apps/hpqf/bench_model.h"
#include "apps/hpqf/commands.h"
#include "hpqf/base/error.h"

namespace hpqf::app {
namespace {

void add_gemm(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand(
      "gemm", "The three products of linear layers: the integer GEMM from fp32 operands against torch");
  const auto config = std::make_shared<BenchGemmConfig>();
  command->add_option("--formats", config->formats, "int8, int12, also with blocks as int8[1x128]; default int8,int12")
      ->delimiter(',')
      ->group("What to measure");
  CLI::Option* shapes =
      command
          ->add_option("--shapes", config->shapes,
                       "MxKxN: rows x inputs x outputs of linear layers; default some of transformers")
          ->delimiter(',')
          ->group("What to measure");
  command
      ->add_option("--model", config->model,
                   "The linear layers of resnet20, vit-tiny, bert-mini, gpt-mini or lstm-lm, instead of --shapes")
      ->group("What to measure");
  command->add_option("--batch-size", config->batch_size, "Of that model; default: what hpqf train takes")
      ->group("What to measure");
  command
      ->add_option("--forms", config->forms,
                   "nt (forward), nn (input gradient), tn (weight gradient); default all three")
      ->delimiter(',')
      ->group("What to measure");
  command
      ->add_option("--path", config->path,
                   "Force one way to run the integer GEMM: avx512-vnni, avx2 or reference; default: the best here")
      ->group("What to measure");
  add_bench_options(*command, config->common);
  command->footer(
      "Times are end to end from fp32: both operands are quantised and packed in every call, or the weight once\n"
      "(packed once), as in all products between two optimizer steps. The error is the relative Frobenius error\n"
      "against the product in fp64.\n"
      "Examples:\n"
      "  hpqf bench gemm\n"
      "  hpqf bench gemm --shapes 2048x512x512,4096x768x3072 --forms nt --json gemm.json\n"
      "  hpqf bench gemm --model gpt-mini --formats int8,int8[1x128] --threads 2 --rounds 30");
  command->callback([&action, shapes, config] {
    action = [shapes, config] {
      if (shapes->count() > 0 && !config->model.empty())
        throw Error("--shapes together with --model", "one of the two", "leave out one of them");
      return bench_gemm(*config);
    };
  });
}

void add_conv(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand(
      "conv", "The three products of 2-d convolutions: the integer kernels from fp32 images against torch");
  const auto config = std::make_shared<BenchConvConfig>();
  command->add_option("--formats", config->formats, "int8, int12, also with blocks as int8[1x128]; default int8,int12")
      ->delimiter(',')
      ->group("What to measure");
  CLI::Option* shapes = command
                            ->add_option("--shapes", config->shapes,
                                         "IMAGESxCHANNELSxSIZExOUTPUTS:kKERNELsSTRIDEgGROUPS, as 16x64x56x128:k3s2; "
                                         "default some of ResNets")
                            ->delimiter(',')
                            ->group("What to measure");
  command->add_option("--model", config->model, "The convolutions of a reference model (resnet20), instead of --shapes")
      ->group("What to measure");
  command->add_option("--batch-size", config->batch_size, "Of that model; default: what hpqf train takes")
      ->group("What to measure");
  command
      ->add_option("--forms", config->forms,
                   "forward, dgrad (input gradient), wgrad (weight gradient); default all three")
      ->delimiter(',')
      ->group("What to measure");
  command
      ->add_option("--path", config->path,
                   "Force one way to run the integer kernels: avx512-vnni, avx2 or reference; default: the best here")
      ->group("What to measure");
  add_bench_options(*command, config->common);
  command->footer(
      "Times are end to end from fp32: images and weights are quantised in every call. Both memory layouts are timed;\n"
      "ratios are to torch's fp32 in its faster layout. The error is the relative Frobenius error against fp64.\n"
      "Examples:\n"
      "  hpqf bench conv\n"
      "  hpqf bench conv --shapes 16x64x56x64:k3,16x128x28x256:k3s2 --forms forward --json conv.json\n"
      "  hpqf bench conv --model resnet20 --formats int8 --threads 2 --rounds 30");
  command->callback([&action, shapes, config] {
    action = [shapes, config] {
      if (shapes->count() > 0 && !config->model.empty())
        throw Error("--shapes together with --model", "one of the two", "leave out one of them");
      return bench_conv(*config);
    };
  });
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
  add_gemm(*bench, action);
  add_conv(*bench, action);
  add_model(*bench, action);
}

}  // namespace hpqf::app
