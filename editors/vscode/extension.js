// Starts `pkc lsp` for .pk files.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("pk").get("command");
  client = new LanguageClient("pk", { command, args: ["lsp"] }, { documentSelector: [{ language: "pk" }] });
  return client.start();
};

exports.deactivate = () => client && client.stop();
