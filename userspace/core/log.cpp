// SPDX-License-Identifier: Apache-2.0
#include "core/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

namespace gradlane {

bool start_log(const std::string& program, const std::string& level) {
  const auto parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off") return false;
  auto logger =
      std::make_shared<spdlog::logger>(program, std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern(std::getenv("JOURNAL_STREAM") != nullptr ? "%l: %v" : "%T.%e %n %^%l%$: %v");
  logger->set_level(parsed);
  spdlog::set_default_logger(std::move(logger));
  return true;
}

}  // namespace gradlane
