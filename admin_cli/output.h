// The rows of one answer, printed in any of farkvctl's formats.
#ifndef FARKV_ADMIN_CLI_OUTPUT_H_
#define FARKV_ADMIN_CLI_OUTPUT_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "admin_cli/options.h"

namespace farkv {

class Output {
 public:
  // JSON and YAML have every column under its key; a wide one is in the table
  // of -o wide only.
  struct Column {
    std::string title;
    std::string key;
    bool wide = false;
    // How tables show a value; null: strings as they are, others as JSON.
    std::string (*show)(const nlohmann::json& value) = nullptr;
  };
  // `kind` names the items in JSON ("NodeList"). The first `name_columns`
  // columns together name an item: -o name prints "node/A" or "pool/A/T1".
  Output(std::string kind, std::vector<Column> columns, size_t name_columns = 1)
      : kind_(std::move(kind)),
        columns_(std::move(columns)),
        name_columns_(name_columns) {}

  // One value per column; strings are shown as they are.
  void AddRow(std::vector<nlohmann::json> values) {
    rows_.push_back(std::move(values));
  }

  // INVALID_ARGUMENT listing the columns when `sort_by` names none of them:
  // "TITLE" or "key", in any case, "-" before it for the largest first.
  absl::Status CheckSortBy(const std::string& sort_by) const;

  const std::vector<Column>& columns() const { return columns_; }
  // The rows as an array of objects; `sort_by` may be no column.
  nlohmann::ordered_json Items(const std::string& sort_by = "") const {
    return ItemsOf(Sorted(sort_by));
  }

  // JSON and YAML carry apiVersion farkv/v1. Rows are in the order they were
  // added in, or sorted: numbers, sizes and times by value, all else by text,
  // and equal ones as they were added.
  void Print(const OutputOptions& options, std::ostream& out) const;
  void Print(const std::string& format, std::ostream& out) const {
    OutputOptions options;
    options.format = format;
    Print(options, out);
  }

 private:
  using Row = std::vector<nlohmann::json>;
  std::vector<Row> Sorted(const std::string& sort_by) const;
  void PrintTable(const std::vector<Row>& rows, const OutputOptions& options,
                  std::ostream& out) const;
  void PrintNames(const std::vector<Row>& rows, std::ostream& out) const;
  nlohmann::ordered_json Document(const std::vector<Row>& rows) const;
  nlohmann::ordered_json ItemsOf(const std::vector<Row>& rows) const;
  std::string Cell(const Row& row, size_t column) const;
  size_t FindColumn(const std::string& name) const;

  std::string kind_;
  std::vector<Column> columns_;
  size_t name_columns_;
  std::vector<Row> rows_;
};

// `document` as the format "json" or "yaml" has it.
void PrintDocument(const nlohmann::ordered_json& document,
                   const std::string& format, std::ostream& out);

// A session as it is named to operators: 8 hex digits; "-" for none.
std::string ShownSession(const std::string& session_id);

}  // namespace farkv

#endif  // FARKV_ADMIN_CLI_OUTPUT_H_
