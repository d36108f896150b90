#include <fmt/format.h>

#include <array>
#include <cmath>

#include "hpqf/cost/workload.h"

namespace hpqf::cost {
namespace {

// 3x3 with padding 1, 1x1 without, 7x7 with 3: all give ceil(size / stride).
double strided(double size, double stride) { return std::ceil(size / stride); }

class Network {
 public:
  Network(std::string model, const ImageShape& image) : image_(image), size_(image.size), channels_(image.channels) {
    work_.model = std::move(model);
    work_.sample = fmt::format("image {}x{}x{}", image.channels, image.size, image.size);
  }

  // Convolution and norm; the names follow torchvision: layerS.B.convN, bnN.
  void conv(const std::string& prefix, int number, double out, double kernel, double stride, bool relu) {
    const double in_size = size_;
    size_ = strided(size_, stride);
    work_.ops.push_back(conv2d(
        fmt::format("{}conv{}", prefix, number),
        {.in_channels = channels_, .out_channels = out, .kernel = kernel, .in_size = in_size, .out_size = size_}));
    channels_ = out;
    work_.ops.push_back(norm(fmt::format("{}bn{}", prefix, number), elements(), out));
    if (relu) work_.ops.push_back(elementwise(prefix, "relu", elements()));
  }

  void block(const std::string& prefix, bool bottleneck, double width, double stride, bool projection) {
    const double in_channels = channels_, in_size = size_;
    if (bottleneck) {
      conv(prefix, 1, width, 1, 1, true);
      conv(prefix, 2, width, 3, stride, true);
      conv(prefix, 3, 4 * width, 1, 1, false);
    } else {
      conv(prefix, 1, width, 3, stride, true);
      conv(prefix, 2, width, 3, 1, false);
    }
    if (projection && (in_channels != channels_ || stride != 1)) {
      work_.ops.push_back(conv2d(
          prefix + "downsample.0",
          {.in_channels = in_channels, .out_channels = channels_, .kernel = 1, .in_size = in_size, .out_size = size_}));
      work_.ops.push_back(norm(prefix + "downsample.1", elements(), channels_));
    }
    work_.ops.push_back(elementwise(prefix, "add", elements(), /*operands=*/2, /*saved=*/0));
    work_.ops.push_back(elementwise(prefix, "relu", elements()));
  }

  void max_pool() {
    const double before = elements();
    size_ = strided(size_, 2);
    work_.ops.push_back(pool("maxpool", before, elements()));
  }

  Workload finish(Figure dataset) {
    work_.ops.push_back(pool("avgpool", elements(), channels_));
    work_.ops.push_back(linear("fc", 1, channels_, image_.classes));
    work_.ops.push_back(cross_entropy(1, image_.classes));
    work_.ops.front().dgrad = false;  // nobody asks for the gradient of an image
    work_.dataset = std::move(dataset);
    return std::move(work_);
  }

 private:
  double elements() const { return channels_ * size_ * size_; }
  ImageShape image_;
  double size_, channels_;
  Workload work_;
};

Workload imagenet_resnet(const char* model, const ImageShape& image, bool bottleneck, std::array<int, 4> blocks) {
  Network net(model, image);
  net.conv("", 1, 64, 7, 2, true);
  net.max_pool();
  for (int stage = 0; stage < 4; ++stage)
    for (int i = 0; i < blocks[stage]; ++i)
      net.block(fmt::format("layer{}.{}.", stage + 1, i), bottleneck, 64 << stage, stage > 0 && i == 0 ? 2 : 1, true);
  return net.finish({1281167, Basis::quoted, "training images of ImageNet-1k (ILSVRC 2012)"});
}

}  // namespace

Workload resnet18(const ImageShape& image) { return imagenet_resnet("resnet18", image, false, {2, 2, 2, 2}); }

Workload resnet50(const ImageShape& image) { return imagenet_resnet("resnet50", image, true, {3, 4, 6, 3}); }

Workload resnet20(const ImageShape& image) {
  Network net("resnet20", image);
  net.conv("", 1, 16, 3, 1, true);
  for (int stage = 0; stage < 3; ++stage)
    for (int i = 0; i < 3; ++i)
      net.block(fmt::format("layer{}.{}.", stage + 1, i), false, 16 << stage, stage > 0 && i == 0 ? 2 : 1, false);
  return net.finish({50000, Basis::quoted, "training images of CIFAR-10"});
}

}  // namespace hpqf::cost
