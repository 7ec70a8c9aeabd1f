//! The controllers that runs choose from, by name.

use std::fmt;

use weir::Algorithm;
use weir_controllers::{LabAlgorithm, LabController};

use crate::nearest;

/// The word for the controllers of the library.
pub const LIBRARY: &str = "library";

/// Controllers by name: those of the library, the historical ones, the newest peers, and your own.
///
/// ```
/// use weir::controllers::nada::Nada;
/// use weir::ControllerFactory;
/// use weir_scenario::Controllers;
///
/// let mine = ControllerFactory::new("mine", |settings| Box::new(Nada::new(settings)));
/// let controllers = Controllers::default().with(mine);
/// let chosen = controllers.choose("mine, gcc")?;
/// let names: Vec<&str> = chosen.iter().map(|controller| controller.name()).collect();
/// assert_eq!(names, ["mine", "gcc"]);
/// # Ok::<(), weir_scenario::UnknownController>(())
/// ```
#[derive(Clone, Debug)]
pub struct Controllers(Vec<LabController>);

impl Default for Controllers {
    /// Those that the lab knows, in the order that reports use.
    fn default() -> Self {
        Self(LabAlgorithm::named().map(LabController::from).collect())
    }
}

impl Controllers {
    /// Adds a controller. It replaces one with the same name.
    #[must_use]
    pub fn with(mut self, controller: impl Into<LabController>) -> Self {
        let controller = controller.into();
        match self.0.iter_mut().find(|known| known.name() == controller.name()) {
            Some(known) => *known = controller,
            None => self.0.push(controller),
        }
        self
    }

    /// All controllers.
    pub fn iter(&self) -> impl Iterator<Item = &LabController> {
        self.0.iter()
    }

    /// The controller of this name.
    ///
    /// # Errors
    ///
    /// No controller has the name.
    pub fn find(&self, name: &str) -> Result<&LabController, UnknownController> {
        let found = self.0.iter().find(|controller| controller.name() == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.0.iter().map(LabController::name).collect();
            let near = nearest(&name.to_lowercase(), names.iter().copied());
            UnknownController {
                name: name.into(),
                near: near.first().map(|near| (*near).into()),
                known: names.join(" "),
            }
        })
    }

    /// The controllers of a list such as `nada,scream`, each once. `library` stands for those that
    /// products embed, `all` for all but the newest peers, and `peers` for those.
    ///
    /// # Errors
    ///
    /// No controller has one of the names.
    pub fn choose(&self, list: &str) -> Result<Vec<LabController>, UnknownController> {
        let mut chosen = Vec::new();
        for name in list.split(',').map(str::trim) {
            for controller in self.named(name)? {
                if !chosen.contains(controller) {
                    chosen.push(controller.clone());
                }
            }
        }
        Ok(chosen)
    }

    /// The controllers of one word of a list.
    fn named(&self, word: &str) -> Result<Vec<&LabController>, UnknownController> {
        match word {
            LIBRARY => Ok(self.iter().filter(|controller| is_of_library(controller)).collect()),
            "all" => Ok(self.iter().filter(|controller| !controller.is_peer()).collect()),
            "peers" => Ok(self.iter().filter(|controller| controller.is_peer()).collect()),
            name => Ok(vec![self.find(name)?]),
        }
    }
}

/// Whether it is a controller of the library, or replaces one.
fn is_of_library(controller: &LabController) -> bool {
    Algorithm::all().any(|algorithm| algorithm.name() == controller.name())
}

/// No controller has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownController {
    /// The name that was asked for.
    pub name: String,
    /// A similar name that exists.
    pub near: Option<String>,
    /// All existing names, separated by spaces.
    known: String,
}

impl fmt::Display for UnknownController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.near {
            Some(near) => write!(f, "unknown controller; did you mean '{near}'?"),
            None => write!(f, "unknown controller; there are {}", self.known),
        }
    }
}
impl std::error::Error for UnknownController {}

#[cfg(test)]
mod tests {
    use super::*;
    use weir::ControllerFactory;
    use weir::controllers::nada::Nada;

    fn own(name: &str) -> LabController {
        ControllerFactory::new(name, |settings| Box::new(Nada::new(settings))).into()
    }

    fn names(chosen: &[LabController]) -> Vec<&str> {
        chosen.iter().map(LabController::name).collect()
    }

    #[test]
    fn a_list_names_each_controller_once_in_its_order() {
        let controllers = Controllers::default().with(own("mine"));
        let chosen = controllers.choose("scream, mine,scream").unwrap();
        assert_eq!(names(&chosen), ["scream", "mine"]);
        let all = controllers.choose("all").unwrap();
        assert_eq!(
            (all.len(), all.last().unwrap().name()),
            (LabAlgorithm::all().len() + 1, "mine")
        );
    }

    #[test]
    fn the_library_is_what_products_embed_without_the_historical_ones() {
        let five = ["gcc", "nada", "scream", "scream-v2", "sluice"];
        let controllers = Controllers::default().with(own("mine")).with(own("sluice"));
        assert_eq!(names(&controllers.choose(LIBRARY).unwrap()), five);
    }

    #[test]
    fn the_newest_peers_have_a_word_of_their_own() {
        let controllers = Controllers::default();
        let peers: Vec<_> = LabAlgorithm::peers().map(LabAlgorithm::name).collect();
        assert_eq!(names(&controllers.choose("peers").unwrap()), peers);
        let both = controllers.choose("sluice,peers,all").unwrap();
        assert_eq!(both.len(), LabAlgorithm::named().count());
        assert_eq!(names(&controllers.choose("copa").unwrap()), ["copa"]);
    }

    #[test]
    fn an_own_controller_takes_the_place_of_one_with_its_name() {
        let mine = own("gcc");
        let controllers = Controllers::default().with(mine.clone());
        assert_eq!(controllers.find("gcc"), Ok(&mine));
        assert_eq!(controllers.iter().count(), LabAlgorithm::named().count());
    }

    #[test]
    fn an_unknown_name_is_told_what_it_may_stand_for() {
        let error = |name| Controllers::default().find(name).unwrap_err().to_string();
        assert_eq!(error("Nda"), "unknown controller; did you mean 'nada'?");
        assert!(
            error("something-else").starts_with("unknown controller; there are gcc gcc-draft ")
        );
    }
}
