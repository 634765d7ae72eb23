// Command siblings prints, for each given package folder, how many sibling files a production file calls on average,
// and the files that call most. A low number means that one can understand a file with few others.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// shown is how many files of a package are named.
const shown = 3

func main() {
	for _, folder := range os.Args[1:] {
		line, err := describe(folder)
		if err != nil {
			fmt.Fprintln(os.Stderr, "siblings:", err)
			os.Exit(1)
		}
		if line != "" {
			fmt.Println(line)
		}
	}
}

// describe returns the line about a package; "" for a folder without production files.
func describe(folder string) (string, error) {
	files, err := parse(folder)
	if err != nil || len(files) == 0 {
		return "", err
	}
	calls := siblings(files)
	names := make([]string, 0, len(calls))
	total := 0
	for name, count := range calls {
		names, total = append(names, name), total+count
	}
	slices.SortFunc(names, func(a, b string) int {
		if calls[a] != calls[b] {
			return calls[b] - calls[a]
		}
		return strings.Compare(a, b)
	})
	var most []string
	for _, name := range names[:min(shown, len(names))] {
		most = append(most, fmt.Sprintf("%s %d", name, calls[name]))
	}
	return fmt.Sprintf("%-36s %3d files  %.1f  (%s)", folder, len(files), float64(total)/float64(len(files)),
		strings.Join(most, ", ")), nil
}

func parse(folder string) (map[string]*ast.File, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	files := map[string]*ast.File{}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "zz_generated") {
			continue
		}
		if files[name], err = parser.ParseFile(token.NewFileSet(), path, nil, 0); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// siblings counts, for each file, the other files whose functions and methods it calls. Of methods of one name in
// several files it knows nothing, and counts none.
func siblings(files map[string]*ast.File) map[string]int {
	home := map[string][]string{}
	for name, file := range files {
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && !slices.Contains(home[function.Name.Name], name) {
				home[function.Name.Name] = append(home[function.Name.Name], name)
			}
		}
	}
	counts := map[string]int{}
	for name, file := range files {
		called := map[string]bool{}
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			function := ""
			switch f := call.Fun.(type) {
			case *ast.Ident:
				function = f.Name
			case *ast.SelectorExpr:
				function = f.Sel.Name
			}
			if homes := home[function]; len(homes) == 1 && homes[0] != name {
				called[homes[0]] = true
			}
			return true
		})
		counts[name] = len(called)
	}
	return counts
}
