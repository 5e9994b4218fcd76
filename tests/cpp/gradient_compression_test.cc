#include "kvstore/gradient_compression.h"

#include <gtest/gtest.h>

#include <cstring>

#include "kvstore/config_table.h"

namespace hipress {
namespace {

using Pull = GradientCompression::Pull;

TEST(GradientCompression, HasDefaults) {
  EXPECT_TRUE(GradientCompression::None()->ForKey(1 << 20)->IsIdentity());
  const auto made = GradientCompression::Make({{"type", "2bit"}});
  EXPECT_TRUE(made->ForKey(1023)->IsIdentity());
  EXPECT_NE(made->ForKey(1024)->Config().find(" threshold=0.5"), std::string::npos);
  EXPECT_EQ(made->pull(), Pull::kAuto);
}

TEST(GradientCompression, TakesTheCodecsParameters) {
  const auto made = GradientCompression::Make(
      {{"scale", "0.1"}, {"pull", "none"}, {"type", "1bit"}, {"min_size", "0"}, {"threshold", "1e-7"}});
  EXPECT_EQ(made->pull(), Pull::kNone);
  EXPECT_NE(made->ForKey(1)->Config().find(" threshold=1e-07 scale=0.1"), std::string::npos);
}

TEST(GradientCompression, LeavesTheTopologyToTheBuilderOfGraphs) {
  EXPECT_NO_THROW(GradientCompression::Make({{"type", "none"}, {"topology", "mesh"}}));
}

TEST(GradientCompression, LeavesSmallKeysAlone) {
  const auto made = GradientCompression::Make({{"type", "onebit"}, {"min_size", "100"}});
  EXPECT_TRUE(made->ForKey(99)->IsIdentity());
  EXPECT_EQ(made->ForKey(100)->Name(), "onebit");
  EXPECT_EQ(GradientCompression::Make({{"type", "onebit"}, {"min_size", "0"}})->ForKey(1)->Name(),
            "onebit");
}

TEST(GradientCompression, KnowsWhichRepliesToCompress) {
  const struct {
    const char* text;
    Pull pull;
  } cases[] = {{"auto", Pull::kAuto}, {"none", Pull::kNone}, {"same", Pull::kSame}};
  for (const auto& item : cases) {
    EXPECT_EQ(GradientCompression::Make({{"pull", item.text}})->pull(), item.pull) << item.text;
  }
}

TEST(GradientCompression, ListsWhatIsAllowed) {
  const struct {
    ParamList params;
    const char* sentence;
  } cases[] = {
      {{{"type", "4bit"}},
       "unknown compression type \"4bit\"; allowed: 1bit, 2bit, bf16, dct, dgc, fp16, graddrop, "
       "lossless, maxmin, maxminef, natural, none, onebit, randomk, sparseloco, stc, tbq, ternary, "
       "terngrad, topk"},
      {{{"type", ""}},
       "unknown compression type \"\"; allowed: 1bit, 2bit, bf16, dct, dgc, fp16, graddrop, "
       "lossless, maxmin, maxminef, natural, none, onebit, randomk, sparseloco, stc, tbq, ternary, "
       "terngrad, topk"},
      {{{"type", "2bit"}, {"threshold", "0"}},
       "threshold of compression type 2bit must be a finite number > 0, not \"0\""},
      {{{"type", "2bit"}, {"threshold", "nan"}},
       "threshold of compression type 2bit must be a finite number > 0, not \"nan\""},
      {{{"type", "2bit"}, {"min_size", "-1"}},
       "min_size of gradient compression must be an integer >= 0, not \"-1\""},
      {{{"min_size", "1e3"}},
       "min_size of gradient compression must be an integer >= 0, not \"1e3\""},
      {{{"min_size", "99999999999999999999"}},
       "min_size of gradient compression must be an integer >= 0, not \"99999999999999999999\""},
      {{{"pull", "1"}}, "pull of gradient compression must be auto, none or same, not \"1\""},
      {{{"type", "2bit"}, {"treshold", "1"}},
       "gradient compression of type 2bit has no parameter \"treshold\"; its parameters: threshold, "
       "type (default 'none'), min_size (default 1024), topology (default 'auto'), devices_per_host "
       "(default '0'), plan (default ''), pull (default 'auto')"},
      {{{"threshold", "1"}},
       "gradient compression of type none has no parameter \"threshold\"; its parameters: type "
       "(default 'none'), min_size (default 1024), topology (default 'auto'), devices_per_host "
       "(default '0'), plan (default ''), pull (default 'auto')"},
      {{{"type", "2bit"}, {"type", "1bit"}},
       "parameter type of gradient compression is given twice; give it once"},
  };
  for (const auto& item : cases) {
    try {
      GradientCompression::Make(item.params);
      ADD_FAILURE() << "accepted what should give: " << item.sentence;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), item.sentence);
    }
  }
}

TEST(ConfigTable, HasOneObjectForEqualCodecsWhoeverHadItFirst) {
  const CodecPtr own = MakeCodec("2bit", {{"threshold", "0.25"}});
  const CodecPtr later = MakeCodec("2bit", {{"threshold", "0.25"}});
  const std::string text = own->Config();
  Message announcement;
  announcement.header.config = Digest(text);
  announcement.payload = AllocateBuffer(text.size());
  std::memcpy(announcement.payload.data, text.data(), text.size());
  ConfigTable table;
  table.OnAnnouncement(Worker(1), announcement);
  const CodecPtr shared = table.Find(Digest(text));
  EXPECT_NE(shared, own);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(table.Intern(own), shared);
    EXPECT_EQ(table.Intern(later), shared);
    EXPECT_EQ(table.Intern(IdentityCodec()), IdentityCodec());
    EXPECT_EQ(table.Intern(shared), shared);
  }
}

TEST(ConfigTable, AParameterMayChangeInEveryStep) {
  ConfigTable sender, receiver;
  const auto deliver = [&](NodeId, Message message, int) { receiver.OnAnnouncement(Worker(0), message); };
  const auto send = [&](const CodecPtr& codec) {
    const CodecPtr sum = sender.ForSumOf(sender.Intern(codec), 2);
    const uint64_t digest = sender.Announce(Worker(1), sum, deliver);
    ASSERT_EQ(receiver.Find(digest)->Config(), sum->Config());
  };
  const CodecPtr constant = MakeCodec("2bit", {{"threshold", "100"}});
  const CodecPtr rare = MakeCodec("2bit", {{"threshold", "200"}});
  for (int step = 0; step < 10000; ++step) {
    send(constant);
    if (step % 700 == 0) send(rare);
    send(MakeCodec("2bit", {{"threshold", std::to_string(1 + step * 0.001)}}));
  }
  EXPECT_LT(sender.size(), 3000u);
  EXPECT_LT(receiver.size(), 3000u);
}

}  // namespace
}  // namespace hipress
