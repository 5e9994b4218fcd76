/*!
 * \file codec.h
 * \brief The object behind a HipressCodecHandle.
 */
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hipress/c_api.h"
#include "operator/contrib/codec.h"
#include "operator/contrib/state_before.h"

struct HipressCodec {
  explicit HipressCodec(hipress::CodecPtr made)
      : codec(std::move(made)), name(codec->Name()), config(codec->Config()),
        state_names(codec->StateNames()) {
    for (const std::string& text : state_names) names.push_back(text.c_str());
  }

  hipress::CodecPtr codec;  // HipressCodecSetThreads changes it, and neither name nor parameters
  /// Tasks of a node that encode with it also hold it.
  const std::shared_ptr<hipress::CodecState> state = std::make_shared<hipress::CodecState>();
  const std::shared_ptr<hipress::StateBefore> before = std::make_shared<hipress::StateBefore>();
  const std::string name, config;
  const std::vector<std::string> state_names;
  std::vector<const char*> names;
};
