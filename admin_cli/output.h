// The rows of one answer, printed as an aligned table or as JSON.
#ifndef FARKV_ADMIN_CLI_OUTPUT_H_
#define FARKV_ADMIN_CLI_OUTPUT_H_

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

namespace farkv {

class Output {
 public:
  // `kind` names the items in JSON ("NodeList"); columns are [title, JSON key].
  struct Column {
    std::string title;
    std::string key;
  };
  Output(std::string kind, std::vector<Column> columns)
      : kind_(std::move(kind)), columns_(std::move(columns)) {}

  // One value per column; strings are shown as they are.
  void AddRow(std::vector<nlohmann::json> values) {
    rows_.push_back(std::move(values));
  }

  // `format` is "table" or "json"; JSON carries apiVersion farkv/v1.
  void Print(const std::string& format, std::ostream& out) const;

 private:
  void PrintTable(std::ostream& out) const;
  void PrintJson(std::ostream& out) const;

  std::string kind_;
  std::vector<Column> columns_;
  std::vector<std::vector<nlohmann::json>> rows_;
};

// A session as it is named to operators: 8 hex digits; "-" for none.
std::string ShownSession(const std::string& session_id);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_OUTPUT_H_
