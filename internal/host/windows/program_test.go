//go:build !windows

package windows

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// program is the part of the agent's source that must match Windows' headers. Names of this package are unqualified,
// local names have the function as a prefix, and names of other packages have the package as a prefix.
type program struct {
	constants map[string]constant.Value
	layouts   map[string]layout
	shared    map[string]bool   // layouts visible to Windows
	offsets   map[string]uint64 // offsets queried from package unsafe
	calls     map[string][]int  // argument counts, by Windows function
	methods   map[string][]string
}

// layout is a structure in memory: the size, and the offsets of named and unnamed fields.
type layout struct {
	size             uint64
	offsets, unnamed []uint64
}

const (
	thisPackage = "github.com/windows-machine-config/wmco/internal/host/windows"
	apiPackage  = "golang.org/x/sys/windows"
	comPackage  = "github.com/go-ole/go-ole"
)

var sizes = types.SizesFor("gc", "amd64")

// listedPackage is a package in the output of `go list`.
type listedPackage struct {
	ImportPath, Dir, Export string
	Module                  *struct{ Main bool }
	GoFiles, Imports        []string
}

// readProgram reads each package of the agent that imports golang.org/x/sys/windows, compiled for Windows. The flags
// equal the build flags of wicd.exe, so that Go's cache contains the result.
func readProgram(t *testing.T) program {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-trimpath",
		"-json=ImportPath,Dir,Export,Module,GoFiles,Imports", "github.com/windows-machine-config/wmco/cmd/wicd")
	list.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	output, err := list.Output()
	if err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	packages := map[string]listedPackage{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var each listedPackage
		if err := decoder.Decode(&each); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages[each.ImportPath] = each
	}
	p := program{map[string]constant.Value{}, map[string]layout{}, map[string]bool{}, map[string]uint64{},
		map[string][]int{}, map[string][]string{}}
	wrappers := readWrappers(t, packages[apiPackage].Dir)
	for _, each := range packages {
		if each.Module != nil && each.Module.Main && slices.Contains(each.Imports, apiPackage) {
			s := checkPackage(t, each, packages)
			p.addPackage(s)
			p.addUses(s, wrappers)
			p.addCalls(t, s)
		}
	}
	return p
}

// source is a package with its types.
type source struct {
	*types.Package
	types.Info
	files []*ast.File
}

func checkPackage(t *testing.T, listed listedPackage, packages map[string]listedPackage) source {
	t.Helper()
	set := token.NewFileSet()
	s := source{Info: types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}}
	for _, name := range listed.GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(listed.Dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.files = append(s.files, file)
	}
	config := types.Config{Sizes: sizes, Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(packages[path].Export)
	})}
	var err error
	if s.Package, err = config.Check(listed.ImportPath, set, s.files, &s.Info); err != nil {
		t.Fatal(err)
	}
	return s
}

// keyOf returns the name of an object in the lists of headers_names_test.go.
func keyOf(of types.Object) string {
	if of.Pkg() == nil || of.Pkg().Path() == thisPackage {
		return of.Name()
	}
	return of.Pkg().Name() + "." + of.Name()
}

// addPackage adds the constants and structures that the package defines.
func (p program) addPackage(s source) {
	for _, name := range s.Scope().Names() {
		if object, ok := s.Scope().Lookup(name).(*types.TypeName); ok {
			p.addLayout(object.Type(), false)
		}
	}
	for _, file := range s.files {
		for _, declaration := range file.Decls {
			prefix := ""
			if function, ok := declaration.(*ast.FuncDecl); ok {
				prefix = function.Name.Name + "."
			}
			ast.Inspect(declaration, func(node ast.Node) bool {
				if spec, ok := node.(*ast.ValueSpec); ok && isWritten(spec) {
					for _, name := range spec.Names {
						p.addConstant(prefix, s.Defs[name])
					}
				}
				return true
			})
		}
	}
}

// isWritten reports whether values are literal numbers or texts. Values derived only from other constants need no
// separate check, and values counted with iota belong to the program.
func isWritten(spec *ast.ValueSpec) bool {
	written := false
	for _, value := range spec.Values {
		ast.Inspect(value, func(node ast.Node) bool {
			_, literal := node.(*ast.BasicLit)
			written = written || literal
			return true
		})
	}
	return written
}

// addConstant adds a constant that the program defines. Durations and booleans are not Windows values.
func (p program) addConstant(prefix string, object types.Object) {
	c, ok := object.(*types.Const)
	if ok && c.Val().Kind() != constant.Bool && c.Type().String() != "time.Duration" {
		p.constants[prefix+keyOf(c)] = c.Val()
	}
}

// addLayout adds a structure. Windows accesses shared structures.
func (p program) addLayout(of types.Type, shared bool) {
	for {
		pointer, ok := of.Underlying().(*types.Pointer)
		if !ok {
			break
		}
		of = pointer.Elem()
	}
	structure, ok := of.Underlying().(*types.Struct)
	if _, generic := of.(*types.TypeParam); !ok || generic || structure.NumFields() == 0 {
		return
	}
	key := keyOfType(of)
	var fields []*types.Var
	for field := range structure.Fields() {
		fields = append(fields, field)
	}
	l := layout{size: uint64(sizes.Sizeof(of))}
	for i, offset := range sizes.Offsetsof(fields) {
		if fields[i].Name() == "_" {
			l.unnamed = append(l.unnamed, uint64(offset))
		} else {
			l.offsets = append(l.offsets, uint64(offset))
		}
	}
	p.layouts[key] = l
	p.shared[key] = p.shared[key] || shared
}

// keyOfType returns the name of a type, or the text of an unnamed type.
func keyOfType(of types.Type) string {
	if named, ok := types.Unalias(of).(*types.Named); ok {
		return keyOf(named.Obj())
	}
	return types.TypeString(of, types.RelativeTo(nil))
}

// addUses adds the Windows values, structures and functions that the package uses from other packages, and the
// structures that pass through package unsafe.
func (p program) addUses(s source, wrappers map[string]call) {
	for _, object := range s.Uses {
		if object.Pkg() == nil || object.Pkg() == s.Package {
			continue
		}
		ofWindows := strings.HasPrefix(object.Pkg().Path(), apiPackage)
		switch object := object.(type) {
		case *types.Const:
			if ofWindows || object.Pkg().Path() == comPackage {
				p.constants[keyOf(object)] = object.Val()
			}
		case *types.Func:
			if wrapper, ok := wrappers[object.Name()]; ok && object.Pkg().Path() == apiPackage {
				p.calls[wrapper.function] = append(p.calls[wrapper.function], wrapper.arguments)
			}
		}
	}
	for _, imported := range s.Imports() {
		if imported.Path() == comPackage {
			p.addMethods(imported)
		}
	}
	for expression, value := range s.Types {
		if strings.HasPrefix(strings.TrimLeft(value.Type.String(), "*"), apiPackage+".") {
			p.addLayout(value.Type, true)
		}
		if use, ok := expression.(*ast.CallExpr); ok && s.isUnsafe(use) {
			p.addLayout(value.Type, true)
			for _, argument := range use.Args {
				p.addLayout(s.Types[argument].Type, true)
			}
			if field, ok := use.Args[0].(*ast.SelectorExpr); ok && types.ExprString(use.Fun) == "unsafe.Offsetof" {
				offset, _ := constant.Uint64Val(value.Value)
				p.offsets[keyOfType(s.Types[field.X].Type)+"."+field.Sel.Name] = offset
			}
		}
	}
}

// isUnsafe reports whether a call is a function of package unsafe or a conversion from unsafe.Pointer.
func (s source) isUnsafe(use *ast.CallExpr) bool {
	if selector, ok := use.Fun.(*ast.SelectorExpr); ok {
		if name, ok := selector.X.(*ast.Ident); ok {
			if imported, ok := s.Uses[name].(*types.PkgName); ok && imported.Imported() == types.Unsafe {
				return true
			}
		}
	}
	return s.Types[use.Fun].IsType() && s.Types[use.Args[0]].Type == types.Typ[types.UnsafePointer]
}

// addMethods adds the vtables of package ole.
func (p program) addMethods(ole *types.Package) {
	for _, name := range ole.Scope().Names() {
		if of, ok := strings.CutSuffix(name, "Vtbl"); ok {
			p.methods[of] = methodsOf(ole.Scope().Lookup(name).Type())
		}
	}
}

// methodsOf returns the methods of a vtable in their order.
func methodsOf(vtable types.Type) (list []string) {
	for field := range vtable.Underlying().(*types.Struct).Fields() {
		if field.Embedded() {
			list = append(list, methodsOf(field.Type())...)
		} else {
			list = append(list, field.Name())
		}
	}
	return list
}
