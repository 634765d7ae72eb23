// parse.c gives what tree-sitter makes of a PowerShell script to a host of WebAssembly. build says how it is compiled.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <tree_sitter/api.h>

const TSLanguage *tree_sitter_powershell(void);

__attribute__((export_name("allocate"))) char *allocate(uint32_t size) { return malloc(size); }

// parse returns one line for each node, parents before children: depth, what is wrong with it, first and last byte, name.
__attribute__((export_name("parse"))) char *parse(const char *script, uint32_t length) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  TSParser *parser = ts_parser_new();
  if (!out || !parser || !ts_parser_set_language(parser, tree_sitter_powershell())) return NULL;
  TSTree *tree = ts_parser_parse_string(parser, NULL, script, length);
  if (!tree) return NULL;
  TSTreeCursor cursor = ts_tree_cursor_new(ts_tree_root_node(tree));
  for (;;) {
    TSNode node = ts_tree_cursor_current_node(&cursor);
    const char *fault = ts_node_is_missing(node) ? "missing" : ts_node_is_error(node) ? "error" : "-";
    fprintf(out, "%u %s %s %u %u %s\n", ts_tree_cursor_current_depth(&cursor), fault, ts_node_is_named(node) ? "named" : "token",
            ts_node_start_byte(node), ts_node_end_byte(node), ts_node_type(node));
    if (ts_tree_cursor_goto_first_child(&cursor)) continue;
    while (!ts_tree_cursor_goto_next_sibling(&cursor)) {
      if (!ts_tree_cursor_goto_parent(&cursor)) {
        fclose(out);
        return text;
      }
    }
  }
}
